/// Changes of one partition that came from elsewhere, and who brought them.
struct BroughtChains: Sendable {
  /// Changes of a chain that follow on one another.
  struct Chain: Sendable {
    let bringer: DeviceMark
    let replica: ReplicaID
    let first: UInt64
    fileprivate(set) var last: UInt64
  }

  private(set) var chains: [Chain] = []
  private let limit: Int

  /// - Parameter limit: of how many chains is noted who brought them.
  init(limit: Int) { self.limit = limit }

  mutating func note(_ chain: Chain) {
    if chains.count < limit { chains.append(chain) }
  }

  mutating func note(_ run: LoggedRun, from bringer: DeviceMark) {
    let index = chains.lastIndex { $0.bringer == bringer && $0.replica == run.replica }
    if let index, chains[index].last == run.first - 1 {
      chains[index].last = run.last
    } else {
      note(Chain(bringer: bringer, replica: run.replica, first: run.first, last: run.last))
    }
  }
}
