import struct Engine.DamagedLog
import Replication
import Storage
import Wire

/// Asks the ledger what it has of this store's log, and knows what it answered last. Belongs to one thread.
final class ReadBackReader {
  private let source: any ForwardingSource
  private let backend: any Backend
  private let limits: ForwarderLimits
  private let ledger: LedgerReader
  private let process: String
  /// What the ledger has, as it was read there.
  private var known: [PartitionID: VersionVector] = [:]
  /// What the node was told last, which counts there for a while: it outlasts ``forget()``.
  private var told: [PartitionID: VersionVector] = [:]

  /// - Parameter process: tells this process from earlier ones, and from those of copies of this directory.
  init(source: any ForwardingSource, backend: any Backend, limits: ForwarderLimits, process: String = "") {
    (self.source, self.backend, self.limits, self.process) = (source, backend, limits, process)
    ledger = LedgerReader(source: source, backend: backend, limits: limits)
  }

  /// Statements of the ledger that are not here. Kept when it is read anew: where one stands does not change.
  private var elsewhere: [StatementPlace] = []

  /// Statements that are not here and are remembered.
  static let elsewhereLimit = 65_536

  /// The ledger is read anew: what went back is known then.
  func forget() { known.removeAll() }

  private struct Asked {
    let chain: ChainKey
    let stored: StoredChain
    /// What is here of it without a hole, and the chain hash there.
    let received: ChainMark
  }

  /// Tells the node what the ledger has of each partition that was asked about.
  func read(_ request: ReadBackRequest) throws -> ReadBackOutcome {
    var outcome = ReadBackOutcome()
    if request == .everything { outcome.accepted = try source.accepted().vectors }
    let (chains, names) = try source.read { store in try store.snapshot { try self.asked(request, $0) } }
    var vectors: [PartitionID: VersionVector] = [:]
    if request == .everything {
      (known, told) = (known.filter { names[$0.key] != nil }, told.filter { names[$0.key] != nil })
      // Where of none of its chains can be asked, nothing is said of a partition any more.
      vectors = told.mapValues { _ in VersionVector() }
    }
    for (asked, position) in try places(of: chains, &outcome, isFresh: request == .everything) {
      let partition = asked.chain.partition
      // Whoever hears it takes all of it for read now.
      let read = request == .everything ? nil : known[partition]
      var vector = vectors[partition] ?? read ?? VersionVector()
      let before = known[partition]?.sequence(of: asked.chain.replica) ?? 0
      outcome.wentBack = outcome.wentBack || before > position?.sequence ?? 0
      vector[asked.chain.replica] = position
      vectors[partition] = vector
    }
    known.merge(vectors) { $1 }
    // Before the documents, of which nothing is told to a copy of the relay that forwards: what a ledger has no more is no
    // reason to let a store go, whoever forwards.
    tell(vectors, names)
    if request == .everything { try readDocuments(&outcome) }
    return outcome
  }

  /// Tells the node of chains of which the ledger has less than the node was told last, and nothing else: a copy of the relay that
  /// forwards need not say what it holds, but must not say what is not so. Of what cannot be asked about it says nothing any more.
  func takeBack() throws {
    let (chains, names) = try source.read { store in try store.snapshot { try self.asked(.everything, $0) } }
    var (unused, there) = (ReadBackOutcome(), [PartitionID: VersionVector]())
    for (asked, position) in try places(of: chains, &unused, isFresh: true) {
      there[asked.chain.partition, default: VersionVector()][asked.chain.replica] = position
    }
    var fallen: [PartitionID: VersionVector] = [:]
    for (partition, before) in told {
      let left = before.fallen(to: there[partition] ?? VersionVector())
      if left != before { fallen[partition] = left }
    }
    tell(fallen, names)
  }

  private func tell(_ vectors: [PartitionID: VersionVector], _ names: [PartitionID: PartitionName]) {
    told.merge(vectors) { $1 }
    source.backendHas(vectors.compactMap { partition, vector in names[partition].map { ($0, vector) } })
  }

  /// How far the ledger has each of the chains, which are asked about as many at once as a question may name.
  private func places(
    of chains: [Asked], _ outcome: inout ReadBackOutcome, isFresh: Bool
  ) throws -> [(Asked, ChainPosition?)] {
    var found: [(Asked, ChainPosition?)] = []
    for start in stride(from: 0, to: chains.count, by: limits.questionChains) {
      let part = Array(chains[start..<min(start + limits.questionChains, chains.count)])
      found += zip(part, try positions(part, &outcome, isFresh: isFresh))
    }
    return found
  }

  private func readDocuments(_ outcome: inout ReadBackOutcome) throws {
    let news = try backend.documentNews(of: process)
    outcome.documents = news
    let held = Set(try source.read { try $0.statementIDs() })
    elsewhere = elsewhere.filter { !held.contains($0.id) }
    if news.ledger.statements != StatementSum.of(held.union(elsewhere.lazy.map(\.id)), source.hash) {
      let there = try backend.statementIDs()
      outcome.statements = there
      elsewhere = try places(of: there.subtracting(held))
    }
    outcome.elsewhere = elsewhere
  }

  /// Where statements stand that are not here. Of those beyond the limit nothing is known: then this relay is one that lacks
  /// something.
  private func places(of ids: Set<Digest>) throws -> [StatementPlace] {
    var found = elsewhere.filter { ids.contains($0.id) }
    let lacking = ids.subtracting(found.lazy.map(\.id)).sorted()
    let asked = lacking.prefix(max(0, ReadBackReader.elsewhereLimit - found.count))
    for start in stride(from: 0, to: asked.count, by: limits.questionChains) {
      let part = Array(asked[start..<min(start + limits.questionChains, asked.count)])
      let heads = Dictionary(try backend.statementHeads(of: part).map { ($0.id, $0.head) }) { first, _ in first }
      // One that does not read is not known.
      found += part.compactMap { id in
        heads[id].flatMap { try? StatementCodec.place(of: id, encoded: $0[...]) }
      }
    }
    return found
  }

  private func asked(
    _ request: ReadBackRequest, _ store: StoreReader
  ) throws -> ([Asked], [PartitionID: PartitionName]) {
    var meant: Set<ChainKey>?
    if case .chains(let chains) = request { meant = chains }
    let partitions = meant.map { Set($0.map(\.partition)) }
    var chains: [Asked] = []
    var names: [PartitionID: PartitionName] = [:]
    for partition in try store.partitions() where partitions?.contains(partition.id) ?? true {
      names[partition.id] = partition.name
      for stored in try store.chains(of: partition.number) where stored.received.sequence > 0 {
        let chain = ChainKey(partition: partition.id, replica: stored.replica)
        guard meant?.contains(chain) ?? true else { continue }
        do {
          chains.append(Asked(chain: chain, stored: stored, received: try received(stored, in: partition.id, store)))
        } catch let failure where DamagedLog.isOfOneRow(failure) {
          // What was read of it before stays.
        }
      }
    }
    return (chains, names)
  }

  /// A store has chain hashes of what counts alone: where more is held, the log is looked at.
  private func received(_ stored: StoredChain, in partition: PartitionID, _ store: StoreReader) throws -> ChainMark {
    let sequence = stored.received.sequence
    guard stored.holdReason == nil, sequence != stored.accepted.sequence,
      let hash = try ledger.hash(of: stored.number, at: sequence, in: partition, store)
    else { return stored.received }
    return ChainMark(sequence: sequence, hash: hash)
  }

  /// How far the ledger has each chain, on the branch that is chosen here. Where that cannot be told, less than is true.
  private func positions(
    _ chains: [Asked], _ outcome: inout ReadBackOutcome, isFresh: Bool
  ) throws -> [ChainPosition?] {
    var found = [ChainPosition?](repeating: nil, count: chains.count)
    var forked: [Int] = []
    let questions = chains.map { question($0, $0.received) }
    for (index, answer) in try answers(questions).enumerated() {
      outcome.marks[chains[index].chain] = .some(answer.mark)
      if answer.hasChange {
        found[index] = questions[index].position
      } else if chains[index].stored.holdReason == nil {
        found[index] = try beginning(chains[index], questions[index], answer, isFresh: isFresh)
      } else if chains[index].stored.accepted.sequence > 0 {
        forked.append(index)
      }
    }
    // The last change that counts is on the chosen branch for certain.
    let accepted = forked.map { question(chains[$0], chains[$0].stored.accepted) }
    for (index, (question, answer)) in zip(forked, zip(accepted, try answers(accepted))) where answer.hasChange {
      found[index] = question.position
    }
    return found
  }

  private func question(_ asked: Asked, _ mark: ChainMark) -> ChainQuestion {
    ChainQuestion(chain: asked.chain, sequence: mark.sequence, hash: mark.hash)
  }

  private func answers(_ questions: [ChainQuestion]) throws -> [ChainAnswer] {
    guard !questions.isEmpty else { return [] }
    let answers = try backend.answers(to: questions)
    guard answers.count == questions.count else {
      throw BackendProblem(.refused, "the backend answered something else than it was asked")
    }
    return answers
  }

  /// The ledger has a beginning of an unforked chain. Where this store's log does not tell which, what was read of it before stays
  /// as far as it can be there, unless all is to be told as read now.
  private func beginning(
    _ asked: Asked, _ question: ChainQuestion, _ answer: ChainAnswer, isFresh: Bool
  ) throws -> ChainPosition? {
    var own: Digest?
    let reached: UInt64
    do {
      reached = try ChainComparison.reached(question, answer) { sequence in
        own = try source.read { try ledger.hash(of: asked.stored.number, at: sequence, in: asked.chain.partition, $0) }
        return own
      }
    } catch let failure where DamagedLog.isOfOneRow(failure) {
      guard !isFresh, let before = known[asked.chain.partition]?[asked.chain.replica] else { return nil }
      return before.sequence <= answer.highest ? before : nil
    }
    guard reached > 0, let own else { return nil }
    return ChainPosition(sequence: reached, tip: own.tip)
  }
}

extension ChainQuestion {
  fileprivate var position: ChainPosition { ChainPosition(sequence: sequence, tip: hash.tip) }
}

extension VersionVector {
  /// Each chain as far as it is in the other vector, too.
  fileprivate func fallen(to other: VersionVector) -> VersionVector {
    var fallen = self
    for (replica, position) in entries where other.sequence(of: replica) < position.sequence {
      fallen[replica] = other[replica]
    }
    return fallen
  }
}
