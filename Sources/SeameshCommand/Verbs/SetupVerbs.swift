import Glibc
import Identity
import Replication
import Seamesh
import Transport
import Wire

private let labelOption = OptionSpecification(
  "label", .text("NAME"), "name of this device for people; otherwise the host's name", configurable: true)

/// What a new fleet is told of its first device.
let foundingOptions = [
  OptionSpecification("fleet", .text("FLEET"), "name of the new fleet", configurable: true),
  OptionSpecification(
    "user", .text("ID"), "the person whom the device acts for; otherwise the login's name", configurable: true),
  labelOption,
  OptionSpecification("profile", .object, profileSummary, configurable: true),
  OptionSpecification(
    "closed", .none, "nobody but admins may do what no rule allows, until it is granted", configurable: true),
]

let profileSummary = "facts about the user that rights may depend on"

let peerOption = OptionSpecification(
  "peer", .text("HOST:PORT"), "address of another node", repeats: true, configurable: true)

let initVerb = Verb(
  "init", "make keys and a new fleet, with this device as its first admin",
  details: [
    "The rules for partitions named agency=, user=, all-users= and conversation= hold in every fleet. In an open fleet every "
      + "member may also write everywhere else; in a closed one only admins may, until seamesh grant says otherwise."
  ],
  options: foundingOptions,
  examples: [
    .init("seamesh init --fleet='Galapagos patrol' --user=ann@wildaid.example", "Founds a fleet"),
    .init("seamesh init --closed --user=ann@wildaid.example", "Founds a fleet in which rights are granted one by one"),
  ]
) { invocation, context throws(Failure) in
  let founded = try NewFleet(invocation).found(context)
  if context.isJSON {
    return context.terminal.print(
      ExtendedJSON.object([
        ("fleet", .string(Text(founded.fleet.text))), ("device", .string(Text(founded.device.text))),
        ("rootKey", .string(Text(founded.rootKeyPath))), ("directory", .string(Text(context.directory))),
        ("aside", founded.aside.map { .string(Text($0)) } ?? .null),
      ]))
  }
  context.terminal.print(
    """
    new fleet \(founded.fleet.text)
    this device \(founded.device.text), its first admin
    The fleet's root key is \(founded.rootKeyPath): keep a copy in a safe place, nothing can replace it.
    Next: \(context.command("run"))
    """)
}

/// What was said of a new fleet and its first device.
struct NewFleet {
  private let name: Text
  private let user: Text
  private let label: Text
  private let profile: ValueMap
  private let openness: FleetFounding.Openness

  init(_ invocation: Invocation) throws(Failure) {
    let user = invocation["user"] ?? loginName()
    (self.user, name) = (Text(user), Text(invocation["fleet"] ?? "\(user)'s fleet"))
    label = Text(invocation["label"] ?? hostName())
    profile = try profileOption(invocation)
    openness = invocation.has("closed") ? .closed : .open
    let (name, label, profile) = (name, label, profile)
    try wellFormed { () throws(NodeError) in
      try NodeSetup.check(fleetName: name, user: Text(user), label: label, profile: profile)
    }
  }

  /// Makes it in the data directory.
  func found(_ context: Context) throws(Failure) -> NodeSetup.Founded {
    let founded = try local { () throws(NodeError) in
      try NodeSetup.found(context.directory, fleetName: name, user: user, label: label, profile: profile, openness)
    }
    tell(founded.aside, context)
    return founded
  }
}

/// An earlier set-up was cut off here: its files are kept.
private func tell(_ aside: String?, _ context: Context) {
  guard let aside else { return }
  context.terminal.warn("what an earlier set-up had made here is now in \(shown(aside))")
}

func profileOption(_ invocation: Invocation) throws(Failure) -> ValueMap {
  guard let text = invocation["profile"] else { return ValueMap() }
  guard case .map(let map) = try typedJSON(text, "--profile") else { throw .usage("--profile takes a JSON object") }
  return map
}

let joinVerb = Verb(
  "join", "enter a fleet with a code from seamesh invite",
  details: ["CODE - is read from standard input, where no other user of this machine can see it."],
  operands: [Operand("CODE")], options: [labelOption, peerOption],
  examples: [
    .init("seamesh join AEBAGBA --peer=10.0.0.2:7000", "Enters the fleet, asking one node besides those in the code")
  ]
) { invocation, context throws(Failure) in
  var code = invocation.required(0)
  if code == "-" {
    code = String(decoding: try InputFile("-").readAll(limit: JoinCode.byteLimit * 2), as: UTF8.self)
  }
  let peers = try peerAddresses(invocation)
  let label = Text(invocation["label"] ?? hostName())
  try wellFormed { () throws(NodeError) in try NodeSetup.check(label: label) }
  let line = WaitingLine(on: context.terminal)
  let joined = try local { () throws(NodeError) in
    defer { line.finish() }
    return try NodeSetup.join(context.directory, code: code, label: label, peers: peers) { line.update(waiting($0)) }
  }
  tell(joined.aside, context)
  if context.isJSON {
    return context.terminal.print(
      ExtendedJSON.object([
        ("fleet", .string(Text(joined.fleet.text))), ("device", .string(Text(joined.device.text))),
        ("statements", .int(Int64(joined.statementCount))), ("directory", .string(Text(context.directory))),
        ("aside", joined.aside.map { .string(Text($0)) } ?? .null),
      ]))
  }
  context.terminal.print(
    "entered fleet \(joined.fleet.text) as device \(joined.device.text)\nNext: \(context.command("run"))")
}

/// For whom a join waits. It asks the last node to its end, so that it may be over the time.
func waiting(_ join: JoinProgress) -> String {
  let last = join.lastFailure.map { "; \($0)" } ?? ""
  let (now, end) = (join.elapsedMilliseconds / 1_000, join.timeoutMilliseconds / 1_000)
  return "waiting for device \(join.inviter): \(min(now, end)) of \(end) s\(last)"
}

func peerAddresses(_ invocation: Invocation) throws(Failure) -> [PeerAddress] {
  try invocation.all("peer").map { text throws(Failure) in
    guard let address = PeerAddress(text) else { throw .usage("--peer takes HOST:PORT, not \(shown(text))") }
    return address
  }
}

/// Work in the data directory itself.
func local<Answer>(_ work: () throws(NodeError) -> Answer) throws(Failure) -> Answer {
  do throws(NodeError) {
    return try work()
  } catch {
    throw Failure(error)
  }
}

extension Failure {
  init(_ error: NodeError) {
    let status: ExitStatus =
      switch error.code {
      case .notFound: .notFound
      case .notPermitted: .notPermitted
      case .badRequest: .usage
      case .storeFailed: .storeFailed
      case .otherVersion: .otherVersion
      case .preconditionFailed, .tooLarge, .unprocessable, .damaged, .diskFull, .readOnly, .busy, .unanswered,
        .stopping,
        .failed:
        .failed
      }
    self.init(status, error.message)
  }
}

extension ExtendedJSON {
  /// One line of JSON from members in any order.
  static func object(_ members: [(key: Text, value: Value)]) -> String {
    var map = ValueMap()
    for member in members { map[member.key] = member.value }
    return text(.map(map))
  }
}

private func hostName() -> String {
  var name = [CChar](repeating: 0, count: 256)
  guard gethostname(&name, name.count - 1) == 0 else { return "device" }
  return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
}

private func loginName() -> String {
  guard let entry = getpwuid(geteuid()), let name = entry.pointee.pw_name else { return "user-\(geteuid())" }
  return String(cString: name)
}
