import Dispatch
import Foundation
import Identity
import Replication
import Storage
import Synchronization
import Transport
import Wire

/// A running node: opens a data directory, finds and serves peers, and answers whoever uses it on this machine.
///
/// The library is young: what is public here may still change with every version.
public final class Node: Sendable {
  let files: NodeFiles
  let configuration: NodeConfiguration
  let inbox: Inbox<EngineJob>
  let watchers = WatchHub()
  let log: NodeLog
  let readers: StoreReaders
  let endpoints: Endpoints
  let history: StoreHistory
  let digests = Mutex<[PartitionNumber: (vector: VersionVector, digest: String)]>([:])
  private let finished: Reply<Bool>
  private let isStopped = Mutex(false)

  /// Where a node can be reached.
  package struct Endpoints: Sendable {
    package let directory: String
    package let fleet: FleetID
    package let device: DeviceID
    package let listen: [SocketAddress]
  }

  /// Opens the directory, which must have been set up, and starts to run.
  package static func start(
    directory path: String, configuration: NodeConfiguration = NodeConfiguration()
  ) throws(NodeError) -> Node {
    if let refusal = DirectoryContents(path).nodeRefusal { throw refusal }
    let directory: DataDirectory
    do throws(FileError) { directory = try DataDirectory(existing: path) } catch { throw NodeError(error) }
    return try Node(try NodeFiles.load(directory), configuration)
  }

  private init(_ files: NodeFiles, _ configuration: NodeConfiguration) throws(NodeError) {
    (self.files, self.configuration) = (files, configuration)
    log = try NodeLog(level: configuration.logLevel, path: configuration.logPath)
    (inbox, finished) = (Inbox(), Reply())
    let started = Reply<Result<Started, NodeError>>()
    let (inbox, log, watchers, finished) = (inbox, log, watchers, finished)
    let thread = Thread {
      do {
        let (engine, begun) = try NodeEngine.open(files, configuration, inbox, watchers, log)
        started.fulfil(.success(begun))
        engine.run()
      } catch {
        started.fulfil(.failure(NodeError(any: error)))
      }
      finished.fulfil(true)
    }
    thread.name = "seamesh engine"
    thread.stackSize = 8 * 1024 * 1024
    thread.start()
    switch started.wait() {
    case .success(let begun): (readers, endpoints, history) = (begun.readers, begun.endpoints, begun.history)
    case .failure(let error): throw error
    }
  }

  /// What the engine thread made that others use, too.
  struct Started: Sendable {
    let readers: StoreReaders
    let endpoints: Endpoints
    let history: StoreHistory
  }

  /// Ends sessions, notes how far the replica has come, and closes the store. Acknowledged writes are on disk already.
  public func stop() {
    let wasStopped = isStopped.withLock { stopped in
      defer { stopped = true }
      return stopped
    }
    guard !wasStopped else { return }
    watchers.stop()
    readers.stopAll()
    inbox.put(.stop)
    _ = finished.wait()
  }

  /// The store was lost before this start, and is being filled anew from the fleet (S8).
  package var hasFetchedStore: Bool { history.wasFetched }

  deinit { stop() }

  var isStopping: Bool { isStopped.withLock { $0 } }

  /// Runs `body` on the engine thread and waits for its answer.
  func onEngine<Answer: Sendable>(
    _ body: @escaping @Sendable (NodeEngine) -> Answer
  ) throws(NodeError) -> Answer {
    guard !isStopping else { throw NodeError(.stopping, "the node is stopping") }
    let reply = Reply<Answer?>()
    let isTaken = inbox.put(.call { engine in reply.fulfil(engine.isStopping ? nil : body(engine)) }) != nil
    guard isTaken, let answer = reply.wait() else { throw NodeError(.stopping, "the node is stopping") }
    return answer
  }
}

extension NodeEngine {
  static func open(
    _ files: NodeFiles, _ configuration: NodeConfiguration, _ inbox: Inbox<EngineJob>, _ watchers: WatchHub,
    _ log: NodeLog
  ) throws -> (NodeEngine, Node.Started) {
    var (store, history) = try files.openStore(configuration, log)
    let own = try NodeOpening.ownReplica(store, files, isAtStart: true)
    if !history.wasFetched { history.causes = Set(try NodeOpening.renewalCauses(store, files, isAtStart: true)) }
    let authority = try NodeOpening.authority(try NodeOpening.statements(store, files.fleet), files.fleet)
    let box = TransportBox()
    let intake = FrameIntake(fleet: files.fleet, authority: authority, inbox: inbox) { box.transport?.pauseReading($0) }
    let identity = try TLSIdentity(files.deviceKey)
    let transport = try SecureTransport(
      credentials: TLSCredentials(certificate: identity.certificateDER, privateKey: identity.privateKeyDER),
      handler: intake)
    box.set(transport)
    let listen = try listen(transport, configuration)
    let mesh = try NodeOpening.mesh(
      store, files, configuration, instance: UUIDValue(SecureRandom.bytes(16)) ?? .zero,
      listenPort: listen.first?.port ?? 0)
    let engine = NodeEngine(
      EngineParts(
        files: files, configuration: configuration, store: store, inbox: inbox, intake: intake, transport: transport,
        watchers: watchers, log: log, mesh: mesh, own: own,
        subscriptions: Set(try store.subscriptions())))
    let endpoints = Node.Endpoints(
      directory: files.directory.path, fleet: files.fleet, device: files.device, listen: listen)
    return (engine, Node.Started(readers: store.readers, endpoints: endpoints, history: history))
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

  func begin() {
    if own.causes.contains(.log) { keepLogEvidence() }
    saveSidecar()
    let remembered = attempt([]) { try store.peers() }
    for peer in remembered {
      let addresses = peer.addresses.compactMap { SocketAddress($0.text) }
      dial(dialPolicy.handle(.remembered(peer.device, addresses), now: clock, using: &random))
    }
    dial(dialPolicy.handle(.configured(configuration.peers), now: clock, using: &random))
    startDiscovery()
  }

  func finish() {
    discovery?.stop()
    commit()
    for id in mesh.sessions.keys.sorted() {
      send(.goodbye(.stopping), to: id)
      if let link = links[id] { transport.close(link.connection) }
    }
    for job in inbox.close() {
      switch job {
      case .write(let write): write.reply.fulfil(.failure(NodeError(.stopping, "the node is stopping")))
      case .call(let body): body(self)
      default: break
      }
    }
    transport.stop()
    if failure == nil { closeStore() }
    log.flush()
  }

  /// That the log was lost can be seen at this start alone: the next one finds a log again. So it is written down until a
  /// new replica is drawn.
  private func keepLogEvidence() {
    guard case .present(var sidecar)? = try? ReplicaSidecar.load(from: files.directory) else { return }
    sidecar.log = .lost
    do throws(FileError) {
      try sidecar.save(to: files.directory)
    } catch {
      log.error("the loss of the log could not be noted", ["reason": "\(error)"])
    }
  }

  /// Leaves everything in the database, and no log beside it. The note that there is none comes before it goes.
  private func closeStore() {
    store.readers.close()
    do {
      let isWhole = try store.carryOverAll()
      saveSidecar(isLogClosed: isWhole)
      if isWhole { try store.closeLog() }
    } catch {
      log.error("the store could not be closed", ["reason": "\(error)"])
    }
  }

  /// The mesh took in what did not reach the disk: everything is read again, and every session begins anew.
  func restartMesh() {
    for (_, link) in links.links {
      transport.close(link.connection, afterFlush: false)
      guard let device = link.device else { continue }
      dial(dialPolicy.handle(.disconnected(device), now: clock, using: &random))
    }
    let causes = own.causes
    (pending, outbox) = (PendingCommit(), [])
    guard failure == nil else { return }
    do {
      mesh = try NodeOpening.mesh(
        store, files, configuration, instance: mesh.local.instance, listenPort: mesh.local.listenPort)
      own = try NodeOpening.ownReplica(store, files, isAtStart: false)
      own.causes.formUnion(causes)
      links.removeAll()
    } catch {
      failure = NodeError(any: error)
    }
  }
}

/// The transport, once it is there: its handler is made before it.
private final class TransportBox: Sendable {
  private let held = Mutex<SecureTransport?>(nil)
  var transport: SecureTransport? { held.withLock { $0 } }
  func set(_ transport: SecureTransport) { held.withLock { $0 = transport } }
}
