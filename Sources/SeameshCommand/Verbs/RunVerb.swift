import Engine
import Forwarding
import Glibc
import Identity
import LocalAPI
import Replication
import Seamesh
import Transport
import Wire

let runVerb = Verb(
  "run", "run the node in the foreground",
  details: [
    "Where the data directory holds no node yet, and none was ever to enter a fleet there, a new fleet is made first, as "
      + "seamesh init does; a line says so before. A line says when the node is ready; SIGTERM or an interrupt stops it "
      + "cleanly.",
    "Where the store is lost but the keys are there, the node waits until it meets another one of its fleet, and fetches "
      + "everything anew.",
  ],
  options: [
    OptionSpecification(
      "listen", .text("[ADDR:]PORT"), "where other nodes reach this one; port 0 picks one", configurable: true),
    peerOption,
    OptionSpecification(
      "no-discovery", .none,
      "neither look for other nodes nor announce this one; where peers were met before, and where --peer says, they are "
        + "dialled all the same", configurable: true),
    OptionSpecification(
      "api", .text("[ADDR:]PORT"), "serve the local interface over TCP too, on loopback, with the token of api.token",
      configurable: true),
    OptionSpecification("relay", .none, "subscribe to all that peers offer and this node may hold", configurable: true),
    linkOption, forwardOption,
    OptionSpecification(
      "home-bound", .none, "with --forward: bring the office's edits home, as a device of the user office",
      configurable: true),
  ] + foundingOptions,
  examples: [
    .init("seamesh run", "Runs the node, which finds others by itself"),
    .init("seamesh run --listen=7000 --peer=10.0.0.2:7000 --api=127.0.0.1:8080", "Runs it at fixed addresses"),
    .init(
      "seamesh run --link='{\"class\": \"satellite\", \"interfaces\": [\"ppp*\"], \"bytesPerDay\": 5000000, \"carries\": "
        + "[\"agency=Gabon\", \"*\"]}'",
      "Takes 5 MB a day over ppp links, reports of the agency before all else"),
  ]
) { invocation, context throws(Failure) in
  var configuration = try nodeConfiguration(invocation)
  configuration.testBuild = try local { () throws(NodeError) in try TestBuildSwitch(environment()) }
  let loopback = try invocation["api"].map { text throws(Failure) in try loopbackAddress(text) }
  let backend = try namedBackend(invocation, directory: context.directory)
  if invocation.has("home-bound"), backend == nil { throw .usage("--home-bound goes with --forward=URL") }
  let signals = StopSignals()
  DescriptorBudget.raise()
  configuration.recoveryMilliseconds = .max
  configuration.isRecoveryGivenUp = { StopSignals.isPending }
  configuration.watch.end = endHung
  let start = try local { () throws(NodeError) in try NodeSetup.start(of: context.directory) }
  try prepare(start, invocation, context)
  let run = NodeRun(
    context: context, loopback: loopback, backend: backend, bringsEditsHome: invocation.has("home-bound"), start: start,
    signals: signals)
  var reopening = StoreReopening(directory: context.directory)
  while let failure = try run.untilItEnds(&configuration) {
    context.terminal.warn("the store failed (\(failure.message)): opening it again once all of it has been looked at")
    try reopening.look(after: failure, now: ElapsedClock.now())
  }
}

/// A node from its start to its end, with what stands around it in the process.
private struct NodeRun {
  let context: Context
  let loopback: LoopbackAddress?
  let backend: NamedBackend?
  let bringsEditsHome: Bool
  let start: NodeSetup.Start
  let signals: StopSignals

  /// Nil where somebody wanted it to end; otherwise what its store failed with. It is found under the same port again.
  func untilItEnds(_ configuration: inout NodeConfiguration) throws(Failure) -> NodeError? {
    let node: Node
    do throws(NodeError) {
      node = try Node.start(directory: context.directory, configuration: configuration)
    } catch {
      // Told to stop while it waited for its fleet: nothing was begun.
      if error.code == .stopping { return nil }
      throw error.code == .storeFailed ? StoreReopening.failure(error, context.directory) : Failure(error)
    }
    defer { node.stop() }
    let forwarding = try backend.map { named throws(Failure) in
      try NodeForwarding(node, named, bringsEditsHome: bringsEditsHome)
    }
    defer { forwarding?.stop() }
    let server: LocalServer
    do throws(LocalServerError) {
      var local = LocalServerConfiguration(directory: context.directory, loopback: loopback)
      local.connections = node.descriptors.users
      server = try LocalServer.start(node: node, configuration: local)
    } catch {
      throw Failure(.failed, "\(error)")
    }
    // Requests that are being answered get their answer from a node that still runs.
    defer { server.stop() }
    if server.endpoints.isTokenReplaced {
      node.log.notice("others could read api.token: it holds a new token, and who has the old one is not let in")
    }
    let status = try local { () throws(NodeError) in try node.status() }
    let ready = ReadyLine(
      device: status.device, fleet: status.fleet, listen: status.listen, api: server.endpoints,
      isNewFleet: start == .newFleet, isStoreFetched: node.hasFetchedStore)
    context.terminal.print(context.isJSON ? ready.json : ready.text)
    var rest = HeapRest(now: ElapsedClock.now(), used: HeapRest.processorMilliseconds)
    while !signals.wait(milliseconds: NodeRun.lookMilliseconds) {
      if rest.rests(now: ElapsedClock.now(), used: HeapRest.processorMilliseconds) {
        node.releaseCaches()
        HeapReserve.giveBack()
      }
      guard let failure = node.storeFailure else { continue }
      configuration.listenPort = node.listenPort ?? configuration.listenPort
      return failure
    }
    return nil
  }

  private static let lookMilliseconds = 250
}

/// Ends the process at once, so that whoever runs it can start it anew. By system calls alone: what hangs may hold a lock.
private func endHung(_ what: String) {
  let line =
    "seamesh: \(what), and the node ends, to be started again; what was acknowledged is on disk. A disk that hangs is the "
    + "usual cause: look in the system's log.\n"
  _ = line.withCString { write(STDERR_FILENO, $0, strlen($0)) }
  _exit(ExitStatus.hung.rawValue)
}

/// Says what is about to be done that nobody may have meant, before it is done.
private func prepare(_ start: NodeSetup.Start, _ invocation: Invocation, _ context: Context) throws(Failure) {
  switch start {
  case .node:
    let unused = foundingOptions.map(\.name).filter(invocation.has)
    guard !unused.isEmpty else { return }
    context.terminal.warn(
      "\(unused.map { "--\($0)" }.joined(separator: ", ")): for a new fleet alone; the one of the node in "
        + "\(shown(context.directory)) stays as it is")
  case .newFleet:
    let fleet = try NewFleet(invocation)
    context.terminal.warn(
      "there is no node in \(shown(context.directory)) yet: making a new fleet (to enter an existing one, stop this and "
        + "run seamesh join CODE --data=DIR with another directory)")
    _ = try fleet.found(context)
  case .nodeWithoutStore:
    context.terminal.warn(
      "seamesh.db has gone from \(shown(context.directory)): waiting for a node of the fleet to fetch everything anew")
  }
}

/// What a script or a person waits for.
struct ReadyLine {
  let device: String
  let fleet: String
  let listen: [String]
  let api: LocalEndpoints
  let isNewFleet: Bool
  let isStoreFetched: Bool

  private static let newFleet =
    "new fleet made; to enter an existing one, stop and run: seamesh join CODE --data=DIR, with another directory"
  private static let storeFetched =
    "the store had gone: everything is fetched anew from the fleet, under a new replica id; seamesh doctor says more"

  private var note: String? { isNewFleet ? ReadyLine.newFleet : isStoreFetched ? ReadyLine.storeFetched : nil }

  var json: String {
    var members: [(key: Text, value: Value)] = [
      ("event", .string("ready")), ("device", .string(Text(device))), ("fleet", .string(Text(fleet))),
      ("listen", .array(listen.map { .string(Text($0)) })), ("api", .map(interface)), ("newFleet", .bool(isNewFleet)),
      ("storeFetched", .bool(isStoreFetched)),
    ]
    if let note { members.append(("note", .string(Text(note)))) }
    return ExtendedJSON.object(members)
  }

  private var interface: ValueMap {
    var map = ValueMap()
    map["socket"] = .string(Text(api.socket))
    map["url"] = api.url.map { .string(Text($0)) } ?? .null
    return map
  }

  var text: String {
    var lines = [
      "ready: device \(device.prefix(12)) of fleet \(fleet.prefix(12)), listening on \(listen.joined(separator: ", "))"
    ]
    lines.append("local interface: \(api.socket)\(api.url.map { " and \($0)" } ?? "")")
    if api.socketIsElsewhere {
      lines.append("(the data directory's path is too long for a socket; api.sock there links to it)")
    }
    if let note { lines.append(note) }
    return lines.joined(separator: "\n")
  }
}

/// SIGTERM and SIGINT, held back from every thread that starts after this is made, and taken by ``wait()``.
struct StopSignals {
  private var set = sigset_t()

  init() {
    sigemptyset(&set)
    sigaddset(&set, SIGTERM)
    sigaddset(&set, SIGINT)
    pthread_sigmask(SIG_BLOCK, &set, nil)
    // A peer or client that goes away is an error of one write, never the end of the process.
    signal(SIGPIPE, SIG_IGN)
  }

  /// One has come and nobody has taken it yet.
  static var isPending: Bool {
    var pending = sigset_t()
    sigemptyset(&pending)
    sigpending(&pending)
    return sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1
  }

  /// False once the time is over.
  func wait(milliseconds: Int) -> Bool {
    var (set, patience) = (set, timespec())
    (patience.tv_sec, patience.tv_nsec) = (milliseconds / 1_000, milliseconds % 1_000 * 1_000_000)
    guard sigtimedwait(&set, nil, &patience) > 0 else { return false }
    // A second one, while the node stops, ends the process at once: everything acknowledged is on disk.
    pthread_sigmask(SIG_UNBLOCK, &set, nil)
    return true
  }
}

func nodeConfiguration(_ invocation: Invocation) throws(Failure) -> NodeConfiguration {
  var configuration = NodeConfiguration()
  if let text = invocation["listen"] {
    if let port = UInt16(text) {
      configuration.listenPort = port
    } else if let address = SocketAddress(text) {
      (configuration.listenHost, configuration.listenPort) = (address.host, address.port)
    } else {
      throw .usage("--listen takes PORT or ADDR:PORT, such as 7000 or 10.0.0.1:7000, not \(shown(text))")
    }
  }
  configuration.peers = try peerAddresses(invocation)
  configuration.usesDiscovery = !invocation.has("no-discovery")
  configuration.isRelay = invocation.has("relay")
  configuration.links = try linkRules(invocation)
  if let level = invocation["log-level"].flatMap({ LogLevel(name: $0) }) { configuration.logLevel = level }
  configuration.logPath = invocation["log-file"].map(absolutePath)
  return configuration
}

private func loopbackAddress(_ text: String) throws(Failure) -> LoopbackAddress {
  do throws(LocalServerError) {
    return try LoopbackAddress(text)
  } catch {
    throw .usage("--api: \(error)")
  }
}
