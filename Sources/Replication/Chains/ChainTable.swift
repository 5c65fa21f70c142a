/// The chains of one partition by their replicas, ascending and side by side: a node has hundreds of thousands of chains, most
/// of which nothing comes for. A dictionary has up to two places for each.
struct ChainTable: Sendable {
  private var replicas: [ReplicaID] = []
  /// Nil for one that was taken out.
  private var chains: [Chain?] = []

  mutating func reserveCapacity(_ count: Int) {
    replicas.reserveCapacity(count)
    chains.reserveCapacity(count)
  }

  /// The place of a replica's chain, or where it would be.
  private func place(of replica: ReplicaID) -> (index: Int, isThere: Bool) {
    // Those that are read at the start come in order.
    guard let last = replicas.last, replica <= last else { return (replicas.count, false) }
    var (low, high) = (0, replicas.count - 1)
    while low < high {
      let middle = (low + high) / 2
      if replicas[middle] < replica { low = middle + 1 } else { high = middle }
    }
    return (low, replicas[low] == replica)
  }

  subscript(replica: ReplicaID) -> Chain? {
    get {
      let place = place(of: replica)
      return place.isThere ? chains[place.index] : nil
    }
    set {
      let place = place(of: replica)
      switch (newValue, place.isThere) {
      case (let chain?, true): chains[place.index] = chain
      case (let chain?, false):
        replicas.insert(replica, at: place.index)
        chains.insert(chain, at: place.index)
      case (nil, true):
        replicas.remove(at: place.index)
        chains.remove(at: place.index)
      case (nil, false): break
      }
    }
  }

  /// Taken out while it changes, so that its arrays are not copied. Its place stays until it is set again, to a chain or to
  /// nil: nothing behind it moves.
  mutating func take(_ replica: ReplicaID) -> Chain? {
    let place = place(of: replica)
    guard place.isThere else { return nil }
    let chain = chains[place.index]
    chains[place.index] = nil
    return chain
  }

  var keys: [ReplicaID] { replicas }
  var values: some Sequence<Chain> { chains.lazy.compactMap { $0 } }

  func compactMapValues<Value>(_ transform: (Chain) -> Value?) -> [ReplicaID: Value] {
    var found: [ReplicaID: Value] = [:]
    for (replica, chain) in zip(replicas, chains) { found[replica] = chain.flatMap(transform) }
    return found
  }
}
