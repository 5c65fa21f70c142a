import Engine
import Glibc
import Identity
import Kernel
import Replication
import Storage
import Transport
import Wire

/// An engine with the real store, clock, connections and discovery around it, and the loop of its thread.
final class RunningEngine {
  private let files: NodeFiles
  private let configuration: NodeConfiguration
  private let inbox: Inbox
  private let board: EngineBoard
  private let log: NodeLog
  private let condition: StoreCondition
  private let transport: SecureTransport
  private let engine: NodeEngine
  private let store: Store
  private let mark: SidecarMark
  private let keeper: LinkKeeper
  private let beat = ThreadBeat("of the engine")
  private let gauges: NodeGauges
  private var hasToldOfDescriptors = false
  private var isStopping = false
  let started: Node.Started

  init(
    _ files: NodeFiles, _ configuration: NodeConfiguration, _ inbox: Inbox, _ board: EngineBoard, _ feed: CommitFeed,
    _ log: NodeLog, _ condition: StoreCondition, _ descriptors: DescriptorBudget
  ) throws {
    (self.files, self.configuration, self.inbox, self.board, self.log) = (files, configuration, inbox, board, log)
    self.condition = condition
    let formats = try configuration.testBuild?.formats(in: files.fleet) ?? .all
    var history: StoreHistory
    (store, history) = try files.openStore(configuration, log)
    mark = SidecarMark(files.directory, store)
    let identity = EngineIdentity(files, formats: formats)
    keeper = LinkKeeper(configuration.links, directory: files.directory, fleet: files.fleet, log: log)
    let box = TransportBox()
    // Nobody is a member before the engine has said which statements hold.
    let authority = CurrentAuthority(Authority(root: files.deviceKey.publicKey, hash: SHA256.hash))
    let decoder = FrameDecoder(fleet: files.fleet, identity.cryptography, verify: RememberedSignatures().verify)
    let intake = FrameIntake(decoder, authority: authority, inbox: inbox, keeper: keeper) {
      box.transport?.pauseReading($0)
    }
    let connections = ThreadBeat("of connections")
    let certificate = try TLSIdentity(files.deviceKey)
    if descriptors.isScarce {
      log.notice(
        "few files may be open at once",
        ["limit": "\(descriptors.limit)", "peers": "\(descriptors.peers)", "users": "\(descriptors.users)"])
    }
    let hangs = configuration.testBuild?.hangsConnections == true
    transport = try SecureTransport(
      descriptors.transport,
      credentials: TLSCredentials(certificate: certificate.certificateDER, privateKey: certificate.privateKeyDER),
      handler: hangs ? HangingHandler() : intake, meter: keeper, beat: connections)
    if hangs { transport.dial(HangingHandler.trigger, tag: 0) }
    box.set(transport)
    let listen = try RunningEngine.listen(transport, configuration)
    var options = EngineOptions(instance: UUIDValue(SecureRandom.bytes(16)) ?? .zero)
    options.mesh = configuration.mesh
    options.listenPort = listen.first?.port ?? 0
    options.isRelay = configuration.isRelay
    let links = NodeLinks(transport, intake, keeper)
    let ports = EnginePorts(
      store: store, mark: mark, clock: SystemClock(), links: links, journal: log, feed: FeedTeller(feed, board, store),
      random: SystemRandomNumberGenerator())
    engine = try NodeEngine(identity, options, ports)
    gauges = NodeGauges(
      transport: transport, intake: intake, inbox: inbox, readers: store.readers, syncs: store.syncs)
    authority.adopt(engine.state.mesh.authority)
    if !history.wasFetched { history.causes = engine.state.own.causes }
    started = Node.Started(
      readers: store.readers,
      endpoints: Node.Endpoints(
        directory: files.directory.path, fleet: files.fleet, device: files.device, listen: listen),
      discovery: NodeDiscovery(
        fleet: files.fleet, port: options.listenPort, isUsed: configuration.usesDiscovery, inbox: inbox, log: log),
      authority: authority, history: history, keeper: keeper, gauges: gauges, beats: [beat, connections])
    keeper.begin { [board] in board.totals.map { ($0.changes, $0.logBytes) } }
    keeper.follow { [inbox] in
      box.transport?.reviewLinks()
      inbox.put(.event(.passagesMoved))
    }
    if let build = configuration.testBuild { runAs(build, formats, links) }
    board.publish(EngineView(engine, judgesWipe: true), judgesWipe: true)
  }

  private func runAs(_ build: TestBuildSwitch, _ formats: KnownFormats, _ links: NodeLinks) {
    log.notice("runs as another build, for a test", ["build": build.build?.rawValue ?? "one that is watched closely"])
    guard !formats.news.isEmpty else { return }
    links.news = NewsTeller(formats, log) { [unowned engine] id in
      guard let session = engine.state.mesh.sessions[id], let hello = session.hello else { return nil }
      return (hello, session.device)
    }
  }

  private static func listen(
    _ transport: SecureTransport, _ configuration: NodeConfiguration
  ) throws(NodeError) -> [SocketAddress] {
    do {
      return try transport.listen(host: configuration.listenHost, port: configuration.listenPort)
    } catch {
      let address =
        configuration.listenHost.map { SocketAddress($0, port: configuration.listenPort).description }
        ?? "port \(configuration.listenPort)"
      throw NodeError(.failed, "cannot listen on \(address): \(error); give another one with --listen")
    }
  }

  /// Ends after ``NodeJob/stop``.
  func run() {
    beat.works()
    engine.turn(rememberedPeers())
    if configuration.testBuild?.hangs == true { while true { sleep(.max) } }
    while !isStopping {
      beat.rests()
      inbox.wait(milliseconds: engine.nextWake.millisecondsSince(ElapsedClock.now()))
      beat.works()
      engine.turn(inbox.take(.peers).compactMap(\.event), asked: { takeAsked() }, isEnding: { isStopping })
      noteCondition()
      if board.isDue { board.publish(EngineView(engine, judgesWipe: true), judgesWipe: true) }
      noteDescriptors()
      started.discovery.refresh { engine.links.policy.linkedInstances }
      keeper.look()
    }
    finish()
  }

  /// What users of the node ask, in the midst of a turn too.
  private func takeAsked() -> [EngineEvent] {
    beat.works()
    let jobs = inbox.take(.users)
    isStopping = isStopping || jobs.contains { if case .stop = $0 { true } else { false } }
    return jobs.compactMap(\.event)
  }

  /// Once: who looks finds the number with `doctor` and among the metrics.
  private func noteDescriptors() {
    guard !hasToldOfDescriptors, transport.statistics.acceptFailures > 0 else { return }
    hasToldOfDescriptors = true
    log.error("no descriptor was free for a connection: others wait until one is closed")
  }

  private func noteCondition() {
    guard let failure = engine.storeFailure else { return }
    if case .removed? = failure as? StoreError { return }
    condition.note(failure)
  }

  /// Where peers were met before, and those that the operator named.
  private func rememberedPeers() -> [EngineEvent] {
    let met = configuration.dialsRemembered ? engine.attempt([]) { try store.peers() } : []
    let remembered = met.map { peer in
      EngineEvent.sighting(
        .remembered(peer.device, peer.addresses.compactMap { SocketAddress($0.text) }))
    }
    return remembered + [.sighting(.configured(configuration.peers))]
  }

  private func finish() {
    started.discovery.stop()
    // What still waits is answered: by then nothing is taken any more.
    engine.turn(inbox.close().compactMap(\.event))
    engine.finish()
    transport.stop()
    keeper.settle()
    if engine.failure == nil, condition.failure == nil { closeStore() }
    log.flush()
    beat.rests()
  }

  /// Leaves everything in the database, and no log beside it. The note that there is none comes before it goes.
  private func closeStore() {
    store.readers.close()
    do {
      mark.isLogClosed = try store.carryOverAll()
      engine.keeper.saveMark()
      if mark.isLogClosed { try store.closeLog() }
    } catch {
      log.error("the store could not be closed", ["reason": "\(error)"])
    }
  }
}
