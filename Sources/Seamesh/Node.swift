import Engine
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
  let inbox: Inbox
  let board: EngineBoard
  let feed: CommitFeed
  let log: NodeLog
  let readers: StoreReaders
  let endpoints: Endpoints
  let history: StoreHistory
  /// What may be shown follows from it.
  let authority: CurrentAuthority
  let digests = StateDigests()
  let resultTurns: ResultTurns
  /// For a page of a pass.
  let pageTurns = TimedSemaphore()
  let liveMemory: LiveMemory
  let condition: StoreCondition
  package let descriptors: DescriptorBudget
  let gauges: NodeGauges
  let discovery: NodeDiscovery
  package let keeper: LinkKeeper
  let startedAt = ElapsedClock.now()
  private let finished: Reply<Bool>
  private let watchdog: Watchdog
  private let isStopped = Mutex(false)
  let forwarding = Mutex<(any NodeForwarder)?>(nil)

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
    resultTurns = ResultTurns(configuration.reads)
    for _ in configuration.reads.keptReaders..<StoreReaders.limit { pageTurns.signal() }
    liveMemory = LiveMemory(limit: configuration.reads.allLiveBytes)
    log = try NodeLog(level: configuration.logLevel, path: configuration.logPath)
    (inbox, board, finished, condition) = (Inbox(), EngineBoard(), Reply(), StoreCondition(log))
    descriptors = configuration.descriptors ?? .ofProcess
    feed = CommitFeed(followers: descriptors.followers)
    let started = Reply<Result<Started, NodeError>>()
    let (inbox, board, log, feed, finished, condition) = (inbox, board, log, feed, finished, condition)
    let descriptors = descriptors
    let thread = Thread {
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
    thread.name = "seamesh engine"
    thread.stackSize = 8 * 1024 * 1024
    thread.start()
    switch started.wait() {
    case .success(let begun):
      (readers, endpoints, discovery) = (begun.readers, begun.endpoints, begun.discovery)
      (authority, history, keeper, gauges) = (begun.authority, begun.history, begun.keeper, begun.gauges)
      watchdog = Watchdog(begun.beats, configuration.testBuild?.hastened(configuration.watch) ?? configuration.watch)
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
    let wasStopped = isStopped.withLock { stopped in
      defer { stopped = true }
      return stopped
    }
    guard !wasStopped else { return }
    feed.stop()
    readers.stopAll()
    inbox.put(.stop)
    _ = finished.wait()
    watchdog.stop()
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
    let reply = Reply<Answer>()
    let isTaken = inbox.put(
      .event(
        .call { [board] engine in
          let answer = body(engine)
          board.noteAnswer()
          reply.fulfil(answer)
        }))
    guard isTaken else { throw NodeError(.stopping, "the node is stopping") }
    return try answer(of: reply)
  }

  /// Waits for it no longer than ``ReadLimits/replyMilliseconds``: whoever asked is not to hang with a disk that hangs.
  /// `isPatient`: or for as long as it takes.
  func answer<Answer: Sendable>(of reply: Reply<Answer>, isPatient: Bool = false) throws(NodeError) -> Answer {
    let milliseconds = isPatient ? .max : limits.replyMilliseconds
    guard let answer = reply.wait(milliseconds: milliseconds) else {
      throw NodeError(
        .unanswered,
        "the node has not answered for \(milliseconds / 1_000) s: what was asked may still be done; look before asking "
          + "again, and at seamesh doctor")
    }
    return answer
  }

  /// How the engine does; where it is busy, how it did when it was looked at last.
  func view(judgesWipe: Bool = false) throws(NodeError) -> EngineView {
    guard !isStopping,
      let view = board.view(
        judgesWipe: judgesWipe,
        { [inbox, board] in
          inbox.put(
            .event(.look { engine in board.publish(EngineView(engine, judgesWipe: board.isWipeAsked)) }))
        })
    else { throw NodeError(.stopping, "the node is stopping") }
    return view
  }
}

/// The transport, once it is there: its handler is made before it.
final class TransportBox: Sendable {
  private let held = Mutex<SecureTransport?>(nil)
  var transport: SecureTransport? { held.withLock { $0 } }
  func set(_ transport: SecureTransport) { held.withLock { $0 = transport } }
}
