import Engine
import Identity
import Kernel
import Replication
import Storage

/// Reads the documents of the store, for this device's user.
final class DocumentReader: Sendable {
  let engine: EngineLine
  let limits: ReadLimits
  let readers: StoreReaders
  let resultTurns: ResultTurns
  let fleet: FleetID
  /// What may be shown follows from it.
  private let authority: CurrentAuthority
  private let device: PublicKey
  private let condition: StoreCondition
  /// For a page of a pass.
  private let pageTurns = TimedSemaphore()

  init(
    _ engine: EngineLine, _ readers: StoreReaders, _ limits: ReadLimits, _ authority: CurrentAuthority,
    _ files: NodeFiles, _ condition: StoreCondition
  ) {
    (self.engine, self.readers, self.limits) = (engine, readers, limits)
    (self.authority, self.condition) = (authority, condition)
    (fleet, device) = (files.fleet, files.deviceKey.publicKey)
    resultTurns = ResultTurns(limits)
    for _ in limits.keptReaders..<StoreReaders.limit { pageTurns.signal() }
  }

  /// Documents are shown where this device may read: what it may only carry it passes on and shows nobody, and so it does
  /// with what it may read no longer ([decision 29](Docs/Decisions/0029-what-may-be-read-is-shown.md)).
  func checkMayShow(_ partition: PartitionName) throws(NodeError) { try check(.read, "read", in: partition) }

  func checkMayCarry(_ partition: PartitionName) throws(NodeError) { try check(.carry, "carry", in: partition) }

  private func check(_ needed: AccessLevel, _ verb: String, in partition: PartitionName) throws(NodeError) {
    let authority = authority.now
    let level = authority.level(of: device, in: partition)
    guard level < needed else { return }
    let standing = RightsWords(authority).standing(of: device, in: partition)
    throw NodeError(
      .notPermitted, "this device may not \(verb) \(partition.text.string): \(standing)",
      lackOfRight: LackOfRight(
        partition: partition.text.string, has: PartitionAccess(level), needs: PartitionAccess(needed))
    )
  }

  // MARK: Readers

  /// As ``reading(isRepeated:_:)``, for a page of a pass: those who ask for one thing find a reader all the same.
  func readingPage<Answer>(_ body: (StoreReader) throws -> Answer) throws(NodeError) -> Answer {
    do { return try inPageTurn { try reading(body) } } catch { throw NodeError(any: error) }
  }

  func inPageTurn<Answer>(_ body: () throws -> Answer) throws -> Answer {
    guard pageTurns.wait(milliseconds: UInt64(clamping: limits.pageMilliseconds)) else {
      throw NodeError(.busy, "others read as much as may be read at a time: ask again in a moment")
    }
    defer { pageTurns.signal() }
    return try body()
  }

  func reading<Answer>(isRepeated: Bool = false, _ body: (StoreReader) throws -> Answer) throws(NodeError) -> Answer {
    let endings = readers.endings
    do {
      return try readers.read(within: limits.pageMilliseconds, body)
    } catch StoreError.interrupted where !readers.isStopped && readers.endings != endings && !isRepeated {
      // The log was to begin anew, and this question stood in its way.
      return try reading(isRepeated: true, body)
    } catch {
      throw refusal(of: error)
    }
  }

  /// Of what was met while the store was read.
  func refusal(of error: any Error) -> NodeError {
    guard let error = error as? StoreError else { return NodeError(any: error) }
    if case .interrupted = error, readers.isStopped { return EngineLine.stopping }
    condition.noteRead(error)
    return NodeError(error)
  }

  func number(_ partition: PartitionName, _ reader: StoreReader) throws(StoreError) -> PartitionNumber? {
    try reader.partitionNumber(id(of: partition))
  }

  func place(
    _ partition: PartitionName, _ collection: Text, _ reader: StoreReader
  ) throws(StoreError) -> StoredPlace? {
    guard let number = try number(partition, reader), let collection = try reader.collectionNumber(collection) else {
      return nil
    }
    return StoredPlace(partition: number, collection: collection)
  }

  func id(of partition: PartitionName) -> PartitionID { partition.id(fleet: fleet, hash: SHA256.hash) }
}

/// Where the documents of one collection of one partition lie in the store.
struct StoredPlace {
  let partition: PartitionNumber
  let collection: CollectionNumber
}
