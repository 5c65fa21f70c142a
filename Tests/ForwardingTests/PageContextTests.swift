import Foundation
import Identity
import Replication
import Storage
import Testing
import Wire

@testable import Engine
@testable import Forwarding

/// Contexts that a relay remembers, so that each run's may be sent as it differs from that of the run before.
@Suite("Contexts of the pages that go to a ledger")
struct PageContextTests {
  /// Of each context here.
  private static let entries = 6_000

  @Test("contexts are remembered up to so many entries; beyond them each chain's next one is sent whole")
  func bound() throws {
    // Passed by one context, it is noticed with the next.
    let most = PageReader.contextEntryLimit / Self.entries
    for (chains, isWhole) in [(most, false), (most + 2, true)] {
      let forms = try ContextLog(chains: chains, entries: Self.entries).forms()
      #expect(forms.count == 2 * chains)
      #expect(forms.prefix(chains).allSatisfy { $0.isWhole })
      #expect(forms.dropFirst(chains).allSatisfy { $0.isWhole == isWhole })
    }
  }
}

extension ContextForm {
  fileprivate var isWhole: Bool { if case .full = self { true } else { false } }
}

/// A store with chains of two runs each: first the first run of every chain, then the second of every one.
private final class ContextLog {
  private let fleet = FleetID(Digest(words: (1, 2, 3, 4)))
  private let directory: String
  private let store: Store

  init(chains: Int, entries: Int) throws {
    directory = NSTemporaryDirectory() + "seamesh-contexts-" + String(UUID().uuidString.prefix(8))
    try FileManager.default.createDirectory(
      atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let key = SigningKey()
    store = try Store.open(directory: directory, fleet: fleet, device: DeviceID(key.publicKey))
    let name = try PartitionName("room=1")
    let partition = name.id(fleet: fleet, hash: SHA256.hash)
    try store.transact(isBacklog: false) { try $0.addPartition(partition, name) }
    var context = VersionVector()
    for index in 0..<UInt64(entries) {
      context[ReplicaID(high: 2, low: index)] = ChainPosition(sequence: 1, tip: .zero)
    }
    let identities = (0..<UInt64(chains)).map {
      ChainIdentity(fleet: fleet, partition: partition, replica: ReplicaID(high: 1, low: $0))
    }
    var ends = identities.map { $0.genesis(SHA256.hash) }
    for sequence in 1...2 as ClosedRange<UInt64> {
      for (index, chain) in identities.enumerated() {
        let run = try oneChangeRun(
          chain, after: sequence - 1, ends[index], context, id: Int64(sequence), key)
        try store.transact(isBacklog: false) { transaction in
          let appended = AppendedRun(
            first: sequence, last: sequence, context: run.record.context, body: RunCodec.encode(run)[...])
          _ = try transaction.append(appended, to: chain, genesis: chain.genesis(SHA256.hash))
        }
        ends[index] = run.record.hashAtLast
      }
    }
  }

  deinit { try? FileManager.default.removeItem(atPath: directory) }

  /// Of the contexts as one relay sends them, a page after the other.
  func forms() throws -> [ContextForm] {
    let reader = PageReader(fleet: fleet, hash: SHA256.hash)
    var request = Forwarder.LoadRequest(
      view: LedgerView(), statementsAfter: 0, runsAfter: 0, unmarked: [:], bytes: 1_000_000, changes: 7, marks: 0)
    var forms: [ContextForm] = []
    while true {
      let page = try store.readers.read { store in try store.snapshot { try reader.page(request, from: $0) } }
      for run in page.batch.runs {
        var bytes = CBORReader(run.context[...])
        forms.append(try bytes.readContext())
      }
      guard !page.isEnd else { return forms }
      request.runsAfter = page.runsEnd
      request.view.take(page.batch, AppendOutcome())
    }
  }
}
