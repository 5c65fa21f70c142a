import Foundation
import Replication

@testable import Storage

let testFleet = FleetID(digest(1))
let testDevice = DeviceID(digest(2))

func digest(_ number: UInt64) -> Digest { Digest(words: (number, number &* 31, 7, 11)) }
func replica(_ number: UInt64) -> ReplicaID { ReplicaID(high: number, low: 99) }
func partitionID(_ number: UInt64) -> PartitionID { PartitionID(digest(1_000 + number)) }

func vector(_ entries: [UInt64: UInt64]) -> VersionVector {
  VersionVector(
    Dictionary(
      uniqueKeysWithValues: entries.map {
        (replica($0.key), ChainPosition(sequence: $0.value, tip: TipHash(high: $0.key, low: $0.value)))
      }))
}

/// A directory of its own that goes with the last reference to it.
final class TemporaryDirectory {
  let path: String

  init() throws {
    path = NSTemporaryDirectory() + "/seamesh-storage-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func open(_ change: (inout StoreOptions) -> Void = { _ in }) throws -> Store {
    var options = StoreOptions()
    change(&options)
    return try Store.open(directory: path, fleet: testFleet, device: testDevice, options: options)
  }

  func open(
    _ change: (inout StoreOptions) -> Void, hasLostLog: (FoundLog) throws(StoreError) -> Bool
  ) throws -> Store {
    var options = StoreOptions()
    change(&options)
    return try Store.open(
      directory: path, fleet: testFleet, device: testDevice, options: options, hasLostLog: hasLostLog)
  }
}

/// A store with one partition, one collection and one chain, for tests that need a place to write.
struct Place {
  let partition: PartitionNumber
  let collection: CollectionNumber
  let chain: ChainNumber

  init(_ transaction: borrowing Transaction) throws {
    partition = try transaction.number(of: partitionID(1), name: PartitionName("agency=Test"))
    collection = try transaction.number(ofCollection: "reports")
    chain = try transaction.number(of: replica(1), in: partition, genesis: digest(0))
  }
}
