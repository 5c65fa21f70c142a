import Forwarding
import Glibc
import Identity
import Kernel
import Links
import Replication
import Seamesh
import Storage
import Transport
import Wire

/// Puts a node and its forwarder together: neither knows the other.
final class NodeForwarding: NodeForwarder {
  private let service: ForwardingService
  private let node: Node

  /// - Parameter bringsEditsHome: whether the office's edits are written here.
  init(
    _ node: Node, _ named: NamedBackend, limits: ForwarderLimits = ForwarderLimits(),
    bringsEditsHome: Bool = false
  ) throws(Failure) {
    self.node = node
    let backend: PostgreSQLBackend
    do throws(BackendProblem) {
      backend = try PostgreSQLBackend(
        named.address, fleet: node.fleet, relay: node.device, environment: environment(),
        meter: MeteredSockets(node.keeper), password: named.password)
    } catch {
      throw Failure(error)
    }
    let source = try NodeLogSource(node)
    let home = bringsEditsHome ? EditWay(from: backend, to: try NodeEdits(node)) : nil
    service = ForwardingService(
      source: source, backend: backend, limits: limits, home: home,
      allowance: { [keeper = node.keeper] in backend.linkPath.map(keeper.allowance) ?? .free },
      stateChanged: { [weak node] report in node?.noteForwarding(ForwardingStatus(report)) })
    do throws(SystemError) { try service.start() } catch {
      throw Failure(.failed, "forwarding could not be started: \(error)")
    }
    node.attach(self)
    node.keeper.follow { [weak service] in service?.linkMoved() }
  }

  /// The node lets go of it as well.
  func stop() {
    service.stop()
    node.attach(nil)
  }

  var status: ForwardingStatus { ForwardingStatus(service.report) }

  func refused(most count: Int) -> [RefusedChain] {
    service.report.aside.sorted { $0.key < $1.key }.prefix(count).map { chain, row in
      RefusedChain(
        partition: chain.partition, replica: chain.replica, changes: row.changes, reason: row.sentence)
    }
  }

  func refusedStatements(most count: Int) -> [RefusedStatementStatus] {
    service.report.refusedStatements.sorted { $0.key < $1.key }.prefix(count).map { id, refused in
      // It is from this node's own store, and reads.
      let statement = try? StatementCodec.decode(refused.encoded[...], SHA256.hash)
      return RefusedStatementStatus(
        id: hexadecimal(id.bytes),
        issuer: statement.map { hexadecimal(DeviceID.derived(from: $0.issuer, SHA256.hash).digest.bytes) } ?? "",
        number: statement?.sequence ?? 0, room: statement?.scope.string ?? "", reason: refused.sentence)
    }
  }

  func sendNow() { service.sendNow() }
}

/// In the data directory: which ledger had how much of the log.
private let forwardMemoryName = "forward.state"

/// A node's log and commits, as a forwarder wants them.
private final class NodeLogSource: ForwardingSource {
  private let node: Node
  private let follower: CommitFollower

  init(_ node: Node) throws(Failure) {
    self.node = node
    follower = try local { () throws(NodeError) in try node.followCommits() }
  }

  var fleet: FleetID { node.fleet }
  var hash: HashFunction { SHA256.hash }

  func read<Result>(_ body: (StoreReader) throws -> Result) throws -> Result { try node.readStore(body) }
  func readIfFree<Result>(_ body: (StoreReader) throws -> Result) throws -> Result? { try node.readStoreIfFree(body) }

  var held: LogAmount? { node.logAmount.map { LogAmount(changes: $0.changes, bytes: $0.bytes) } }

  func accepted() throws -> (vectors: [PartitionID: VersionVector], position: String) {
    let accepted = try node.accepted()
    return (accepted.vectors, accepted.position.text)
  }

  func leavesOut(_ places: [StatementPlace]) -> Set<Digest> {
    // Looked through on this thread, so that nobody waits for it but the forwarder.
    (try? node.statementsNow())?.leavesOut(places) ?? []
  }

  func news(timeoutMilliseconds: UInt64) -> ForwardingNews {
    switch follower.next(timeoutMilliseconds: timeoutMilliseconds) {
    case .moved(let vectors, let position): .moved(vectors, at: position.text)
    case .missed: .missed
    case .nothing: .nothing
    case .stopped: .stopped
    }
  }

  func wake() { follower.wake() }

  func backendHas(_ vectors: [(PartitionName, VersionVector)]) { node.noteBackend(vectors) }

  private var memoryPath: String { node.directory + "/" + forwardMemoryName }

  func remembered() -> String? {
    (try? PrivateFile.content(of: memoryPath)).map { String(decoding: $0, as: UTF8.self) }
  }

  /// Where it cannot be written, a restored ledger is filled again without a word.
  func remember(_ text: String) { try? PrivateFile.replace(memoryPath, Array(text.utf8)) }

  var wallMilliseconds: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
  }
}

extension ForwardingStatus {
  init(_ report: ForwardingReport) {
    self.init()
    (backend, state, reason, remedy) = (report.backend, State(report.state), report.sentence, report.remedy)
    (lagChanges, lagBytes, lagMilliseconds) = (report.lag.changes, report.lag.bytes, report.lagMilliseconds)
    (forwardedChanges, forwardedBytes) = (report.forwarded.changes, report.forwarded.bytes)
    (logChanges, backendChanges) = (report.inLog, report.inBackend)
    remainingMilliseconds = report.remainingMilliseconds
    (deadLetters, staleDocuments) = (Int64(report.deadLetters), Int64(report.staleDocuments))
    (putAside, lostChanges) = (
      Int64(report.aside.count + report.refusedStatements.count), Int64(clamping: report.lost)
    )
    edits = report.edits.map { Edits(written: $0.written, refused: $0.refused, reason: report.editsSentence) }
  }
}

extension ForwardingStatus.State {
  /// The node and its forwarder do not know each other.
  init(_ state: ForwardingState) {
    self =
      switch state {
      case .noRoute: .noRoute
      case .refused: .refused
      case .auth: .auth
      case .tls: .tls
      case .schema: .schema
      case .lagging: .lagging
      case .caughtUp: .caughtUp
      }
  }

  /// Of trying: what is refused once is refused.
  init(trying problem: BackendProblem) {
    self =
      switch problem.kind {
      case .noRoute: .noRoute
      case .refused, .rejected, .gap, .interrupted: .refused
      case .auth: .auth
      case .tls: .tls
      case .schema: .schema
      }
  }
}

extension Failure {
  init(_ problem: BackendProblem) {
    self.init(ExitStatus(problem), problem.sentence + (problem.remedy.isEmpty ? "" : ". " + problem.remedy))
  }
}

extension ExitStatus {
  init(_ problem: BackendProblem) {
    self =
      switch problem.kind {
      case .noRoute, .refused: .unreachable
      case .auth, .tls: .notPermitted
      case .schema: problem.isLackOfRight ? .notPermitted : .failed
      case .rejected, .gap, .interrupted: .failed
      }
  }

  /// Of a state that a node told.
  init(_ state: ForwardingStatus.State) {
    self =
      switch state {
      case .caughtUp: .done
      case .lagging: .behind
      case .noRoute, .refused: .unreachable
      case .auth, .tls: .notPermitted
      case .schema: .failed
      }
  }
}
