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
  let answer = try context.client.ask(.init(method: method, target: "/v1/subscriptions/" + NodePath.encoded(pattern)))
  context.isJSON ? context.terminal.write(answer.body) : context.terminal.print("\(done): \(shown(pattern))")
}

let inviteVerb = Verb(
  "invite", "make a code with which another device enters the fleet",
  details: ["Whoever has the code can enter the fleet. Without a running node it names no address to ask at."],
  options: [
    OptionSpecification("user", .text("ID"), "the person whom the device acts for"),
    OptionSpecification("role", .text("ROLE"), "role of the device in the fleet"),
    OptionSpecification("profile", .object, profileSummary),
  ],
  examples: [.init("seamesh invite --user=ann@wildaid.example", "Makes a code for a device of Ann's")]
) { invocation, context throws(Failure) in
  guard let user = invocation["user"] else { throw .usage("--user=ID is missing: whom will the device act for?") }
  let invitation = InviteRequest(
    user: Text(user), role: Text(invocation["role"] ?? ""), profile: try profile(invocation))
  let code: String
  do throws(Failure) {
    code = try ask(for: invitation, context.client)
  } catch  where error.status == .unreachable && NodeSetup.isSetUp(context.directory) {
    code = try local { () throws(NodeError) in try NodeSetup.invite(context.directory, invitation) }
  }
  if context.isJSON { return context.terminal.print(ExtendedJSON.object([("code", .string(Text(code)))])) }
  context.terminal.print("\(shown(code))\n\nOn the other device: seamesh join \(shown(code))")
}

/// A running node's code names its addresses.
private func ask(for invitation: InviteRequest, _ client: NodeClient) throws(Failure) -> String {
  let body = ExtendedJSON.object([
    ("user", .string(invitation.user)), ("role", .string(invitation.role)), ("profile", .map(invitation.profile)),
  ])
  return try client.ask(.init(method: "POST", target: "/v1/invitations", body: Array(body.utf8))).json().text("code")
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
