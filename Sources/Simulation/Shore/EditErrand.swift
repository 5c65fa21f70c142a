import Engine
import Forwarding
import Replication
import Synchronization
import Wire

/// Brings the office's edits home as the shipped ``HomeBound`` says, one step at a time: asking for them, writing each at the
/// node, and telling what became of them.
final class EditErrand {
  private let edits: any EditStore
  private let claims: ClaimCheck
  private unowned let process: NodeProcess
  private var core = HomeBound()
  private var directives: [HomeBound.Directive] = []
  /// Those that are still to be written, and what became of the others.
  private var left: [OfficeEdit] = []
  private var done: [HomeBound.Settlement] = []
  private var isWriting = false
  private var writesBy = MonotonicTime(milliseconds: 0)
  private var asked: AskedEdit?
  /// When edits were asked for last.
  private var begunAt: UInt64 = 0

  init(_ backend: ModelBackend, _ limits: ForwarderLimits, _ process: NodeProcess) {
    (edits, self.process) = (backend, process)
    claims = ClaimCheck(backend, limits)
  }

  var nextLook: MonotonicTime { core.nextLook }
  var isUnderWay: Bool { !directives.isEmpty || isWriting }

  func begin(_ now: MonotonicTime) {
    directives += core.look(now)
    begunAt = process.ports.world.clock
  }

  /// - Throws: where the backend is lost; then all that is under way is dropped, as a thread that gives up drops it.
  func advance(_ known: LedgerView, _ now: MonotonicTime) throws(BackendProblem) {
    guard !isWriting else { return write(now) }
    guard !directives.isEmpty else { return }
    do throws(BackendProblem) {
      switch directives.removeFirst() {
      case .claim(let most): directives += core.claimed(try edits.claimEdits(most: most, of: nil))
      case .confirm(let edits):
        let names = edits.compactMap { try? PartitionName(Text($0.partition)) }
        let partitions = Set(names.map(process.ports.world.fleet.partition))
        directives += core.confirmed(try claims.standing(edits, known, in: partitions))
      case .write(let edits, let latest): (left, done, isWriting, writesBy) = (edits, [], true, latest)
      case .settle(let outcomes): try edits.settle(outcomes.map { ($0.edit, $0.outcome) })
      }
    } catch {
      directives = []
      throw error
    }
  }

  /// The one that was asked for last is answered, and the next is asked for.
  private func write(_ now: MonotonicTime) {
    if let asked {
      guard let outcome = asked.outcome else { return }
      note(asked.edit, outcome)
      self.asked = nil
    }
    guard now < writesBy, let next = left.first else {
      isWriting = false
      directives += core.wrote(done, now)
      return
    }
    left.removeFirst()
    process.ports.world.oracle.shore.edits.checkAsked(next, since: begunAt, at: process.node)
    do {
      let wish = try EditWish(next)
      if let refusal = wish.refusal(at: process) { return note(next, .refused(refusal)) }
      asked = AskedEdit(wish, at: process)
    } catch {
      note(next, .refused("\(error)"))
    }
  }

  private func note(_ edit: OfficeEdit, _ outcome: EditOutcome) {
    done.append(HomeBound.Settlement(edit: edit.id, outcome: outcome))
    process.ports.world.note("relay \(process.node.slot): edit \(edit.id.short) is \(outcome)")
    switch outcome {
    case .written: process.ports.world.officeWrote()
    case .refused: process.ports.world.count(.officeRefused)
    case .unchanged, .left: break
    }
  }
}

extension UUIDValue {
  /// For whoever reads what happened in a world.
  var short: String { String(high, radix: 16) }
}

/// An edit as the node's own terms have it.
struct EditWish {
  let edit: OfficeEdit
  let partition: PartitionName
  let change: OfficeChange
  private let read: DocumentState?

  init(_ edit: OfficeEdit) throws {
    self.edit = edit
    partition = try PartitionName(Text(edit.partition))
    read = try edit.read.map { try DocumentState(encoded: $0) }
    let body = try edit.body.map { try ExtendedJSON.parseMap(Array($0.utf8)) }
    change = OfficeChange(
      collection: Text(edit.collection), id: try ExtendedJSON.parse(Array(edit.documentID.utf8)),
      body: body.map { [read] in OfficeBody.exact($0, read: read?.shown()) })
  }

  /// Why it will never be done; nil where it may be.
  func refusal(at process: NodeProcess) -> String? {
    if let read { return read.isAlive ? nil : "the document was deleted" }
    return present(at: process)?.isAlive == true ? "a document with this id is there already" : nil
  }

  private func present(at process: NodeProcess) -> DocumentState? {
    let key = DocumentKey(collection: change.collection, id: change.id)
    let stored = try? process.store.base.document(key, in: process.ports.world.fleet.partition(partition))
    return stored.flatMap { try? DocumentState(encoded: $0.state) }
  }

  func reading(at process: NodeProcess) -> EarlierReading {
    EarlierReading(
      state: read ?? present(at: process)?.asEnded, wall: WallTime(milliseconds: edit.madeMilliseconds),
      extensions: [edit.id.asCause])
  }
}

struct OfficeChange: DocumentEdit {
  let collection: Text
  let id: Value
  /// Nil: it is to be deleted.
  let body: ValueMap?

  func outcome(on present: PresentDocument) -> DocumentOutcome {
    body.map { .body($0, hints: WriteHints([])) } ?? .deleted
  }
}

/// An edit that a node was asked to write.
private final class AskedEdit {
  let edit: OfficeEdit
  private unowned let process: NodeProcess
  private let answer = GivenAnswer()

  init(_ wish: EditWish, at process: NodeProcess) {
    (edit, self.process) = (wish.edit, process)
    process.write(wish.change, in: wish.partition, reading: wish.reading(at: process)) { [answer] in answer.put($0) }
  }

  /// Nil before it is answered.
  var outcome: EditOutcome? {
    switch answer.given {
    case nil: nil
    case .success(let receipt): receipt.dot == nil ? .unchanged : .written
    case .failure(let error as EngineError): outcome(of: error)
    case .failure(let error): .left("\(error)")
    }
  }

  /// What passes is left for later, or for a relay that knows more; and what this device alone may not do for another one.
  private func outcome(of error: EngineError) -> EditOutcome {
    switch error {
    case .renewedLately, .otherMembershipLately, .versionNotHere, .versionDamaged, .tooManyStatements,
      .tooManyPartitions:
      .left("\(error)")
    case .notAMember, .notPermitted: isMember ? .refused("\(error)") : .left("\(error)")
    default: .refused("\(error)")
    }
  }

  private var isMember: Bool {
    !process.ports.authority.standingMemberships(of: process.node.key.publicKey).isEmpty
  }
}

private final class GivenAnswer: Sendable {
  private let held = Mutex<Result<ChangeReceipt, any Error>?>(nil)
  var given: Result<ChangeReceipt, any Error>? { held.withLock { $0 } }

  func put(_ result: Result<ChangeReceipt, any Error>) { held.withLock { $0 = result } }
}
