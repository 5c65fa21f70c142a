import Engine
import Replication
import Storage
import Wire

extension MemoryStore: LogReading {
  package func statementBytes() throws -> [[UInt8]] { image.statements }
  package func invitations() throws -> [Invitation] { image.invitations.values.sorted { $0.serial < $1.serial } }
  package func subscriptions() throws -> [Text] { image.subscriptions.sorted() }
  package func holdings() throws -> [KeptHoldings] { image.holdings.sorted { $0.key < $1.key }.map(\.value) }
  package func ownFacts() throws -> OwnFacts { image.own }

  package func logPartitions() throws -> [LogPartition] {
    image.partitions.compactMap { partition in
      guard let partition, let name = partition.name else { return nil }
      return LogPartition(id: partition.id, name: name, totals: partition.totals.record)
    }
  }

  package func logChains(of partition: PartitionID) throws -> [LogChain] {
    try logChains().filter { $0.partition == partition }
  }

  package func logChains() throws -> [LogChain] {
    image.chains.map { LogChain(partition: $0.partition, replica: $0.replica, marks: $0.marks) }
  }

  package func runs(of chain: ChainIdentity, after sequence: UInt64, byteLimit: Int) throws -> [LogRun] {
    guard let number = image.chain(chain) else { return [] }
    let runs = image.chains[number].runs
    var found: [LogRun] = []
    var bytes = 0
    for index in image.chains[number].firstRun(above: sequence)..<runs.count {
      let run = runs[index].record
      if let previous = found.last, bytes + run.body.count > byteLimit, previous.last != run.last { break }
      bytes += run.body.count
      found.append(run)
    }
    return found
  }

  package func ends(beforeRunsBehind arrival: Int64) throws -> [PartitionID: [ReplicaID: UInt64]] {
    var ends: [PartitionID: [ReplicaID: UInt64]] = [:]
    for chain in image.chains {
      let later = chain.runs.lazy.map(\.record).filter { $0.arrival > arrival }
      guard let first = later.map(\.first).min() else { continue }
      ends[chain.partition, default: [:]][chain.replica] = first - 1
    }
    return ends
  }

  package func lastRun(of chain: ChainIdentity) throws -> LogRun? {
    image.chain(chain).flatMap { image.chains[$0].runs.last?.record }
  }

  package func reissues(in partition: PartitionID) throws -> Set<Reissue> {
    guard let number = image.partitionNumbers[partition], let found = image.partitions[number] else { return [] }
    return Set(found.reissues.values)
  }

  package func largePayload(_ hash: Digest) throws -> [UInt8]? { image.largePayloads[hash] }

  package func stagedBytes(_ key: StagedKey) throws -> [UInt8] { image.staged[key]?.bytes ?? [] }

  package func stagedShares() throws -> [StagedShare] {
    image.staged.values.map(\.share).sorted { $0.key < $1.key }
  }

  package func document(_ key: DocumentKey, in partition: PartitionID) throws -> LogDocument? {
    image.partitionNumbers[partition].flatMap { image.partitions[$0]?.documents[key]?.record }
  }

  package func documentsSetAside(limit: Int) throws -> [(partition: PartitionID, key: DocumentKey)] {
    let all = image.partitions.lazy.compactMap { $0 }.flatMap { partition in
      partition.documents.lazy.filter { DocumentStateCodec.isSetAside($0.value.record.state) }
        .map { (partition.id, $0.key) }
    }
    return Array(all.prefix(limit))
  }
}
