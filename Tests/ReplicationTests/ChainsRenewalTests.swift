import Replication
import Testing

@Suite("New replica id on evidence only")
struct ChainsRenewalTests {
  private let id = UUIDValue(high: 1, low: 2)

  private func causes(_ change: (inout RenewalEvidence.Store, inout RenewalEvidence.Sidecar) -> Void) -> [RenewalCause]
  {
    var store = RenewalEvidence.Store(id: id, ownCommits: 10)
    var sidecar = RenewalEvidence.Sidecar(storeID: id, reached: 10, machine: "m", inode: 7)
    change(&store, &sidecar)
    return RenewalEvidence.causes(store: store, sidecar: sidecar, machine: "m", inode: 7)
  }

  @Test("an unclean stop, after which the sidecar lags, is none")
  func none() {
    #expect(causes { _, _ in }.isEmpty)
    #expect(causes { _, sidecar in sidecar.reached = 3 }.isEmpty)
    #expect(causes { store, sidecar in (store.starts, sidecar.starts, sidecar.log) = (4, 4, .open) }.isEmpty)
  }

  @Test("each cause is found by itself, and all at once in order")
  func each() {
    #expect(causes { store, _ in store.id = UUIDValue(high: 9, low: 9) } == [.storeID])
    #expect(causes { _, sidecar in sidecar.reached = 11 } == [.reached])
    #expect(causes { store, sidecar in (store.wasLogEmpty, sidecar.log) = (true, .open) } == [.log])
    #expect(causes { store, sidecar in (store.starts, sidecar.starts, sidecar.log) = (3, 4, .open) } == [.log])
    #expect(causes { _, sidecar in sidecar.machine = "n" } == [.machineID])
    #expect(causes { _, sidecar in sidecar.inode = 8 } == [.inode])
    #expect(causes { store, _ in store.isRestored = true } == [.restored])
    #expect(causes { store, _ in store.hadInputOutputError = true } == [.inputOutputError])
    #expect(causes { store, _ in store.isCorrupt = true } == [.corruption])
    let all = causes { store, sidecar in
      (store.isRestored, store.hadInputOutputError, store.isCorrupt) = (true, true, true)
      sidecar = RenewalEvidence.Sidecar(storeID: .zero, reached: 11, machine: "n", inode: 8)
      sidecar.log = .lost
    }
    #expect(all == RenewalCause.allCases.filter { $0 != .peer })
  }

  @Test("a peer's entry is a claim where it names more, or another hash")
  func peer() {
    let (mine, other) = (TipHash(high: 1, low: 1), TipHash(high: 2, low: 2))
    #expect(!RenewalEvidence.isClaim(ChainPosition(sequence: 3, tip: mine), beyond: 5, tip: mine))
    #expect(RenewalEvidence.isClaim(ChainPosition(sequence: 3, tip: other), beyond: 5, tip: mine))
    #expect(RenewalEvidence.isClaim(ChainPosition(sequence: 6, tip: mine), beyond: 5, tip: nil))
    #expect(!RenewalEvidence.isClaim(.start, beyond: 5, tip: nil))
  }
}
