import Replication
import Seamesh
import Wire

let inviteVerb = Verb(
  "invite", "make a code with which one other device enters the fleet",
  details: [
    "The first device that shows the code enters, as what is said here; no other does. Give it to nobody else.",
    "On an admin's device only. Admins are invited where the fleet's root key lies. Without a running node the code "
      + "names no address to ask at.",
    "--qr writes a picture: SVG where the name ends in .svg, else PBM.",
  ],
  options: [
    OptionSpecification("user", .text("ID"), "the person whom the device acts for"),
    OptionSpecification("role", .text("ROLE"), "role of the device in the fleet; admin makes an admin"),
    OptionSpecification("profile", .object, profileSummary),
    OptionSpecification("valid", .text("TIME"), "how long the code is good, such as 30m, 24h (the default) or 7d"),
    OptionSpecification("qr", .file("FILE"), "write the code as a picture, too"),
  ],
  examples: [
    .init("seamesh invite --user=ann@wildaid.example", "Makes a code for a device of Ann's"),
    .init("seamesh invite --user=ann@wildaid.example --valid=30m --qr=ann.svg", "Makes one for half an hour"),
  ]
) { invocation, context throws(Failure) in
  guard let user = invocation["user"] else { throw .usage("--user=ID is missing: whom will the device act for?") }
  let invitation = InviteRequest(
    user: Text(user), role: Text(invocation["role"] ?? ""), profile: try profileOption(invocation),
    validMilliseconds: try validity(invocation))
  try wellFormed { () throws(NodeError) in try invitation.check() }
  // Before there is an invitation: one whose picture cannot be written would stay open.
  if let path = invocation["qr"] { try checkWritable(path) }
  let issued = try withInvitations(
    context, node: { client throws(Failure) in try ask(for: invitation, client) },
    directory: { path throws(NodeError) in try NodeSetup.invite(path, invitation).json })
  for note in issued.texts("notes") { context.terminal.warn(shown(note)) }
  let code = issued.text("code")
  let picture = QRCode(code)
  if context.isJSON {
    context.terminal.print(ExtendedJSON.text(.map(issued)))
  } else {
    if context.terminal.isOutputTerminal, let picture {
      for line in picture.lines(colours: context.terminal.isColoured) { context.terminal.print(line) }
    }
    context.terminal.print(
      """
      \(shown(code))

      On the other device: seamesh join \(shown(code))
      Invitation \(issued.number("serial")), good once, for \(duration(milliseconds: invitation.validMilliseconds)). \
      This node has to run meanwhile.
      """)
  }
  // Last: should the disk be full, the invitation is open already, and without its code nobody could use it.
  if let path = invocation["qr"] { try save(picture, path) }
}

let invitesVerb = Verb(
  "invites", "show this device's open invitations, or cancel one",
  options: [OptionSpecification("cancel", .text("N"), "nobody enters with invitation N any more")],
  examples: [
    .init("seamesh invites", "Shows the open ones"), .init("seamesh invites --cancel 3", "Closes the third"),
  ]
) { invocation, context throws(Failure) in
  if let number = invocation["cancel"] { return try cancel(number, context) }
  let answer = try withInvitations(
    context,
    node: { client throws(Failure) in try client.ask(.init(target: "/v1/invitations")).json() },
    directory: { path throws(NodeError) in
      var map = ValueMap()
      map["invitations"] = .array(try NodeSetup.invitations(path).map { .map($0.json) })
      return map
    })
  if context.isJSON { return context.terminal.print(ExtendedJSON.text(.map(answer))) }
  let open = answer.list("invitations")
  guard !open.isEmpty else { return context.terminal.print("no invitation is open; seamesh invite makes one") }
  var table = Table(["N", "USER", "ROLE", "GOOD FOR"], rightAligned: [0])
  for invitation in open {
    let rest = invitation.number("expires") - WallClock.milliseconds
    table.append([
      "\(invitation.number("serial"))", invitation.text("user"), invitation.text("role"),
      duration(milliseconds: max(0, rest)),
    ])
  }
  table.print(on: context.terminal)
}

private func cancel(_ number: String, _ context: Context) throws(Failure) {
  guard let serial = UInt64(number) else {
    throw .usage("--cancel takes the number of an invitation, not \(shown(number))")
  }
  let answer = try withInvitations(
    context,
    node: { client throws(Failure) in
      try client.ask(.init(method: "DELETE", target: "/v1/invitations/\(serial)")).json()
    },
    directory: { path throws(NodeError) in
      try NodeSetup.cancelInvitation(path, serial)
      var map = ValueMap()
      (map["serial"], map["cancelled"]) = (.int(Int64(clamping: serial)), .bool(true))
      return map
    })
  context.terminal.print(
    context.isJSON ? ExtendedJSON.text(.map(answer)) : "invitation \(serial) is cancelled")
}

/// Asks the node that runs on the directory, or else does it there.
private func withInvitations(
  _ context: Context, node: (NodeClient) throws(Failure) -> ValueMap, directory: (String) throws(NodeError) -> ValueMap
) throws(Failure) -> ValueMap {
  do throws(Failure) {
    return try node(context.client)
  } catch  where error.status == .unreachable && NodeSetup.isSetUp(context.directory) {
    return try local { () throws(NodeError) in try directory(context.directory) }
  }
}

/// A running node's code names its addresses.
private func ask(for invitation: InviteRequest, _ client: NodeClient) throws(Failure) -> ValueMap {
  let body = ExtendedJSON.object([
    ("user", .string(invitation.user)), ("role", .string(invitation.role)), ("profile", .map(invitation.profile)),
    ("validMilliseconds", .int(invitation.validMilliseconds)),
  ])
  return try client.ask(.init(method: "POST", target: "/v1/invitations", body: Array(body.utf8))).json()
}

private func validity(_ invocation: Invocation) throws(Failure) -> Int64 {
  try timeSpan(invocation, "valid") ?? InviteRequest.validByDefault
}

/// The option's `90s`, `30m`, `24h` or `7d` in milliseconds; nil where it is not given.
func timeSpan(_ invocation: Invocation, _ option: String) throws(Failure) -> Int64? {
  guard let text = invocation[option] else { return nil }
  let units: [Character: Int64] = ["s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000]
  guard let unit = text.last.flatMap({ units[$0] }), let count = Int64(text.dropLast()), count > 0 else {
    throw .usage("--\(option) takes a time such as 30m, 24h or 7d, not \(shown(text))")
  }
  let (product, overflow) = count.multipliedReportingOverflow(by: unit)
  return overflow ? .max : product
}

private func save(_ picture: QRCode?, _ path: String) throws(Failure) {
  guard let picture else { throw Failure(.failed, "the code is too long for a picture") }
  let content = path.hasSuffix(".svg") ? Array(picture.svg.utf8) : picture.portableBitmap
  try writePrivateFile(content, path)
}

extension IssuedInvitation {
  fileprivate var json: ValueMap {
    var map = status.json
    (map["code"], map["notes"]) = (.string(Text(code)), .array(notes.map { .string(Text($0)) }))
    return map
  }
}

extension InvitationStatus {
  fileprivate var json: ValueMap {
    var map = ValueMap()
    (map["serial"], map["user"], map["role"]) = (.int(Int64(clamping: serial)), .string(user), .string(role))
    (map["profile"], map["expires"]) = (.map(profile), .int(expires))
    return map
  }
}
