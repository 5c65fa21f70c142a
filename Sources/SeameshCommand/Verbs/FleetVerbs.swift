import Replication
import Seamesh
import Wire

let subscribeVerb = Verb(
  "subscribe", "want a partition", details: ["A name, or the beginning of names followed by *."],
  operands: [Operand("PARTITION")],
  examples: [.init("seamesh subscribe 'agency=*'", "Wants every partition whose name begins with agency=")]
) { invocation, context throws(Failure) in
  try setSubscription("PUT", "wanted", invocation, context)
}

let unsubscribeVerb = Verb(
  "unsubscribe", "want a partition no longer", details: ["What this node holds of it stays."],
  operands: [Operand("PARTITION")],
  examples: [.init("seamesh unsubscribe agency=WildAid", "Takes nothing new of that partition")]
) { invocation, context throws(Failure) in
  try setSubscription("DELETE", "no longer wanted", invocation, context)
}

private func setSubscription(
  _ method: String, _ done: String, _ invocation: Invocation, _ context: Context
) throws(Failure) {
  let pattern = invocation.required(0)
  guard (try? PartitionName(Text(pattern))) != nil else {
    throw .usage(
      "PARTITION is a name, or the beginning of names followed by *, of 1 to \(PartitionName.byteLimit) bytes without control characters"
    )
  }
  let answer = try context.client.ask(.init(method: method, target: "/v1/subscriptions/" + NodePath.encoded(pattern)))
  guard !context.isJSON else { return context.terminal.write(answer.body) }
  context.terminal.print("\(done): \(shown(pattern))")
  for note in try answer.json().texts("notes") { context.terminal.warn(shown(note)) }
}

let backupVerb = Verb(
  "backup", "copy the store to a file while the node runs on",
  operands: [Operand("FILE", kind: .file)],
  examples: [.init("seamesh backup /media/usb/seamesh.backup", "Copies everything to a USB stick")]
) { invocation, context throws(Failure) in
  var body = ValueMap()
  body["path"] = .string(Text(absolutePath(invocation.required(0))))
  let progress = ProgressBar("copying", on: context.terminal)
  var (lines, last) = (LineSplitter(), ValueMap())
  let request = NodeClient.Request(
    method: "POST", target: "/v1/backup", body: Array(ExtendedJSON.text(.map(body)).utf8))
  try context.client.stream(request) { bytes in
    for line in lines.append(bytes) {
      last = (try? ExtendedJSON.parseMap(line)) ?? last
      progress.update(done: last.number("done"), total: last.number("total"), unit: "pages")
    }
    return true
  }
  progress.finish()
  if let problem = last["error"]?.map { throw Failure(.failed, shown(problem.text("detail"))) }
  guard last["path"] != nil else { throw Failure(.failed, "the node did not say that the copy is whole") }
  context.terminal.print(context.isJSON ? ExtendedJSON.text(.map(last)) : "copied to \(last.text("path"))")
}
