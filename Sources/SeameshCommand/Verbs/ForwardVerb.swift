import Forwarding
import Glibc
import Replication
import Seamesh
import Wire

let forwardVerb = Verb(
  "forward", "show how forwarding to the backend does, try a configuration, make the tables",
  details: [
    "Without an option it shows what the running node forwards and what the backend lacks. The states are no-route, refused, "
      + "auth, tls, schema, lagging and caught-up; --check knows ready as well, where no node runs that would forward.",
    "The URL is postgresql://USER@HOST:PORT/DATABASE. The server's name is verified, unless sslmode in it says otherwise. The "
      + "password is taken from the URL, where others may see it, else from PGPASSWORD, else from forward.password in the data "
      + "directory, else from the file that PGPASSFILE names.",
  ],
  options: [
    forwardOption,
    OptionSpecification("check", .none, "connect to the backend from here, and say what is wrong"),
    OptionSpecification("set-up", .none, "make the tables at the backend, or bring them up to date"),
    OptionSpecification("grant-to", .text("ROLE"), "with --set-up: this role may forward, and nothing else"),
    OptionSpecification("home-bound-to", .text("ROLE"), "with --set-up: this role may forward and bring edits home"),
    OptionSpecification("office-to", .text("ROLE"), "with --set-up: this role may read all documents and edit them"),
    OptionSpecification("audit-to", .text("ROLE"), "with --set-up: this role may read the ledger, and nothing else"),
    OptionSpecification(
      "now", .none, "have the node try at once, where it would wait, and send dead letters and what was put aside again"
    ),
    OptionSpecification(
      "dead-letters", .none, "list changes that the backend refuses and documents that it cannot hold, with the reasons"
    ),
    OptionSpecification("views", .none, "make a view for each collection at the backend, or bring them up to date"),
    OptionSpecification("wait", .none, "wait until the backend has everything"),
  ],
  examples: [
    .init(
      "seamesh forward --set-up --grant-to=relay --forward=postgresql://owner@db.example/fleet", "Makes the tables"),
    .init("seamesh forward --check", "Tries what seamesh.json says, and names what is wrong"),
    .init("seamesh forward --wait", "Waits until the backend has what this node holds"),
  ]
) { invocation, context throws(Failure) in
  if invocation.has("set-up") { return try setUp(invocation, context) }
  for option in ["grant-to", "home-bound-to", "office-to", "audit-to"] where invocation[option] != nil {
    throw .usage("--\(option) goes with --set-up")
  }
  if invocation.has("dead-letters") {
    return try listDeadLetters(context) { () throws(Failure) in try backend(invocation, context, toRead: true) }
  }
  if invocation.has("views") { return try makeViews(try backend(invocation, context), context) }
  if !invocation.has("check") { try requireOwnBackend(invocation, context) }
  if invocation.has("now") { _ = try context.client.ask(.init(method: "POST", target: "/v1/forwarding/send")) }
  let found = invocation.has("check") ? try checked(invocation, context) : try told(invocation, context)
  show(found, context)
  // What was found has been shown already.
  if found.exit != .done { throw Failure(found.exit, "the backend is not up to date: \(found.map.text("state"))") }
}

/// How forwarding does, as this command found out.
private struct FoundState {
  /// As it is shown: the state is a node's, or "ready".
  let map: ValueMap
  let exit: ExitStatus
}

private func setUp(_ invocation: Invocation, _ context: Context) throws(Failure) {
  let address = try named(invocation, context).withPassword()
  let fleet = try local { () throws(NodeError) in try NodeSetup.identity(of: context.directory).fleet }
  let outcome: PostgreSQLSetUp.Outcome
  do throws(BackendProblem) {
    outcome = try PostgreSQLSetUp.perform(
      address, fleet: fleet,
      granting: PostgreSQLGrants(
        relay: invocation["grant-to"], homeBound: invocation["home-bound-to"], office: invocation["office-to"],
        auditor: invocation["audit-to"]), environment: environment())
  } catch {
    throw Failure(error)
  }
  if context.isJSON {
    return context.terminal.print(
      ExtendedJSON.object([
        ("backend", .string(Text(address.shown))), ("formatBefore", .int(Int64(outcome.formatBefore))),
        ("format", .int(Int64(outcome.format))),
      ]))
  }
  let what =
    outcome.formatBefore == 0
    ? "made" : outcome.formatBefore == outcome.format ? "are as they should be" : "brought up to date"
  context.terminal.print(shown("the tables of the ledger in \(address.shown): \(what)"))
}

private func named(_ invocation: Invocation, _ context: Context) throws(Failure) -> NamedBackend {
  guard let backend = try namedBackend(invocation, directory: context.directory) else {
    throw .usage("name the backend with --forward=URL, or as \"forward\" in seamesh.json")
  }
  return backend
}

// MARK: Trying

private func backend(
  _ invocation: Invocation, _ context: Context, toRead: Bool = false
) throws(Failure) -> PostgreSQLBackend {
  let named = try named(invocation, context)
  let identity = try local { () throws(NodeError) in try NodeSetup.identity(of: context.directory) }
  do throws(BackendProblem) {
    let backend = try PostgreSQLBackend(
      named.address, fleet: identity.fleet, relay: identity.device, environment: environment(), password: named.password
    )
    try backend.connect(toRead: toRead)
    return backend
  } catch {
    throw Failure(error)
  }
}

private func checked(_ invocation: Invocation, _ context: Context) throws(Failure) -> FoundState {
  let named = try named(invocation, context)
  let identity = try local { () throws(NodeError) in try NodeSetup.identity(of: context.directory) }
  var map = ValueMap()
  map["backend"] = .string(Text(named.address.shown))
  do throws(BackendProblem) {
    let backend = try PostgreSQLBackend(
      named.address, fleet: identity.fleet, relay: identity.device, environment: environment(), password: named.password
    )
    try backend.connect()
    backend.disconnect()
  } catch {
    map["state"] = .string(Text(ForwardingStatus.State(trying: error).rawValue))
    map["reason"] = .string(Text(error.sentence))
    map["remedy"] = .string(Text(error.remedy))
    return FoundState(map: map, exit: ExitStatus(error))
  }
  let running = try? status(context)
  if let running, running.map.text("backend") == named.address.shown { return running }
  map["state"] = .string("ready")
  if let other = running?.map.text("backend") {
    map["reason"] = .string(Text("the backend takes changes; the node that runs here forwards to \(other)"))
    return FoundState(map: map, exit: .done)
  }
  map["reason"] = .string("the backend takes changes; no node runs here that would forward to it")
  map["remedy"] = .string(Text("Start it: \(context.command("run"))"))
  return FoundState(map: map, exit: .done)
}

/// What a running node tells is of its own backend: who names another on the command line is not answered with that.
private func requireOwnBackend(_ invocation: Invocation, _ context: Context) throws(Failure) {
  guard let url = invocation["forward"], try configuredBackend(context.directory) != url else { return }
  let (named, own) = (try named(invocation, context).address.shown, try status(context).map.text("backend"))
  guard named != own else { return }
  throw .usage("the node that runs here forwards to \(own), not to \(named); --check tells of another backend")
}

// MARK: Asking the node

private func told(_ invocation: Invocation, _ context: Context) throws(Failure) -> FoundState {
  guard invocation.has("wait") else { return try status(context) }
  let progress = ProgressBar("forwarding", on: context.terminal)
  defer { progress.finish() }
  while true {
    let found = try status(context)
    if found.exit == .done { return found }
    progress.update(
      done: found.map.number("backendChanges"), total: found.map.number("logChanges"), unit: "changes",
      more: timeLeft(found.map))
    _ = poll(nil, 0, 200)
  }
}

private func status(_ context: Context) throws(Failure) -> FoundState {
  let status = try context.client.ask(.init(target: "/v1/status")).json()
  guard let map = status["forwarding"]?.map else {
    throw Failure(.failed, "this node does not forward; start it with --forward=URL")
  }
  // A node of another version may have others.
  let state = ForwardingStatus.State(rawValue: map.text("state"))
  return FoundState(map: map, exit: state.map { ExitStatus($0) } ?? .failed)
}

private func show(_ found: FoundState, _ context: Context) {
  if context.isJSON { return context.terminal.print(ExtendedJSON.text(.map(found.map))) }
  context.terminal.print(shown(forwardingLine(found.map)))
  if !found.map.text("remedy").isEmpty { context.terminal.print(shown(found.map.text("remedy"))) }
}

/// One line of state, backend, lag and reason.
func forwardingLine(_ map: ValueMap) -> String {
  // A reason names the backend itself.
  let reason = map.text("reason")
  var line = "\(map.text("state")): \(reason.isEmpty ? map.text("backend") : reason)"
  if map.number("lagChanges") > 0 {
    line += "; it lacks \(counted(map.number("lagChanges"), "change")) (\(byteCount(map.number("lagBytes"))))"
    let waited = map.number("lagMilliseconds")
    if waited > 0 { line += ", the oldest for \(duration(milliseconds: waited))" }
    line += timeLeft(map)
  }
  if map.number("putAside") > 0 {
    line += "; \(counted(map.number("putAside"), "chain")) put aside: see --dead-letters"
  }
  if map.number("deadLetters") > 0 { line += "; \(counted(map.number("deadLetters"), "dead letter"))" }
  if map.number("staleDocuments") > 0 {
    line += "; \(counted(map.number("staleDocuments"), "document")) left as another relay wrote what is there"
  }
  return line
}

/// Nothing where it is not known.
private func timeLeft(_ map: ValueMap) -> String {
  let left = map.number("remainingMilliseconds")
  return left > 0 ? ", about \(duration(milliseconds: max(1_000, left))) left" : ""
}
