import Dispatch
import Engine
import Identity
import Kernel
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
  let engine: EngineLine
  let documents: DocumentReader
  let digests: StateDigests
  let insertTurns = InsertTurns()
  let forwarding: ForwardingDesk
  let feed: CommitFeed
  package let log: NodeLog
  let endpoints: Endpoints
  let history: StoreHistory
  let authority: CurrentAuthority
  let liveMemory: LiveMemory
  let condition: StoreCondition
  package let descriptors: DescriptorBudget
  let gauges: NodeGauges
  let discovery: NodeDiscovery
  package let keeper: LinkKeeper
  let startedAt = ElapsedClock.now()
  private let finished: Reply<Bool>
  private let watchdog: Watchdog

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
    liveMemory = LiveMemory(limit: configuration.reads.allLiveBytes)
    log = try NodeLog(level: configuration.logLevel, path: configuration.logPath)
    engine = EngineLine(configuration.reads)
    (finished, condition) = (Reply(), StoreCondition(log))
    forwarding = ForwardingDesk(engine, log)
    descriptors = configuration.descriptors ?? .ofProcess
    feed = CommitFeed(followers: descriptors.followers)
    let started = Reply<Result<Started, NodeError>>()
    let (inbox, board, log, feed, finished) = (engine.inbox, engine.board, log, feed, finished)
    let (condition, descriptors) = (condition, descriptors)
    @Sendable func run() {
      do {
        let running = try RunningEngine(files, configuration, inbox, board, feed, log, condition, descriptors)
        started.fulfil(.success(running.started))
        running.run()
      } catch {
        // Only the log is told what the disk or SQLite said of it.
        if let error = error as? StoreError, error.sentence != error.description {
          log.error("the store could not be opened", ["reason": "\(error)"])
        }
        started.fulfil(.failure(NodeError(any: error)))
      }
      finished.fulfil(true)
    }
    do throws(SystemError) { try DedicatedThread.start("seamesh engine") { run() } } catch {
      throw NodeError(.failed, "the node cannot run: \(error)")
    }
    switch started.wait() {
    case .success(let begun):
      (endpoints, discovery) = (begun.endpoints, begun.discovery)
      (authority, history, keeper, gauges) = (begun.authority, begun.history, begun.keeper, begun.gauges)
      documents = DocumentReader(engine, begun.readers, configuration.reads, begun.authority, files, condition)
      digests = StateDigests(documents, feed)
      let rules = configuration.testBuild?.hastened(configuration.watch) ?? configuration.watch
      do throws(SystemError) { watchdog = try Watchdog(begun.beats, rules) } catch {
        _ = engine.close()
        inbox.put(.stop)
        _ = finished.wait()
        throw NodeError(.failed, "the node cannot be watched over: \(error)")
      }
      DispatchQueue.global(qos: .utility).async { [readers = begun.readers] in readers.openAhead() }
    case .failure(let error): throw error
    }
  }

  /// What the engine thread made that others use, too.
  struct Started: Sendable {
    let readers: StoreReaders
    let endpoints: Endpoints
    let discovery: NodeDiscovery
    let authority: CurrentAuthority
    let history: StoreHistory
    let keeper: LinkKeeper
    let gauges: NodeGauges
    /// Of the threads that the node cannot do without.
    let beats: [ThreadBeat]
  }

  /// Ends sessions, notes how far the replica has come, and closes the store. Acknowledged writes are on disk already.
  public func stop() {
    guard !engine.close() else { return }
    feed.stop()
    documents.readers.stopAll()
    engine.inbox.put(.stop)
    _ = finished.wait()
    watchdog.stop()
  }

  /// Gives back memory that is kept for questions to come: some MiB for each that was answered at the same time as others. For who
  /// knows that the process rests; the next questions read from the disk what they need.
  public func releaseCaches() { documents.readers.releaseCaches() }

  /// The store was lost before this start, and is being filled anew from the fleet (S8).
  package var hasFetchedStore: Bool { history.wasFetched }

  deinit { stop() }
}

extension Node: NodeInterface {}

/// The transport, for its handler and its meter: they are made before it, and it keeps them. Weakly, for otherwise none of them would
/// go when the node does.
final class TransportBox: Sendable {
  private struct Held { weak var transport: SecureTransport? }

  private let held = Mutex(Held())
  var transport: SecureTransport? { held.withLock { $0.transport } }
  func set(_ transport: SecureTransport) { held.withLock { $0.transport = transport } }
}
