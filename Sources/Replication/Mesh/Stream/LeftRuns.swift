/// What of one partition is not sent to a peer, since others bring it there. It counts as sent, not as announced.
struct LeftRuns: Sendable {
  private(set) var vector = VersionVector()
  /// What of it neighbours pass on that are nearer to the peer than this node.
  private var passedOn: [Chain] = []

  /// How it comes to the peer.
  enum Way: Hashable, Sendable {
    /// From who brought it here, or from its author.
    case direct
    /// Who brought it here brings it to the neighbour as well, and that passes it on.
    case by(_ neighbour: DeviceMark, from: DeviceMark)
  }

  /// Changes of a chain that follow on one another.
  struct Chain: Hashable, Sendable {
    fileprivate(set) var neighbour: DeviceMark
    let bringer: DeviceMark
    let replica: ReplicaID
    fileprivate(set) var first: UInt64
    fileprivate(set) var last: UInt64
  }

  /// What nobody brings any more.
  enum Back {
    case all
    /// By chain where it begins: what follows there comes to the peer behind it.
    case from([ReplicaID: UInt64])
  }

  /// Pieces of chains of which is known to whom they were left. What is beyond comes, where it is not brought, when the peer has
  /// waited for it, or with the next comparison.
  static let limit = 16

  var isEmpty: Bool { vector.isEmpty }

  func covers(_ replica: ReplicaID, _ sequence: UInt64) -> Bool { vector.sequence(of: replica) >= sequence }

  var isAnyPassedOn: Bool { !passedOn.isEmpty }

  mutating func leave(_ replica: ReplicaID, _ first: UInt64, through last: UInt64, _ way: Way) {
    vector[replica] = ChainPosition(sequence: last, tip: .zero)
    guard case .by(let neighbour, let bringer) = way else { return }
    note(Chain(neighbour: neighbour, bringer: bringer, replica: replica, first: first, last: last))
  }

  private mutating func note(_ chain: Chain) {
    let index = passedOn.lastIndex {
      ($0.neighbour, $0.bringer, $0.replica) == (chain.neighbour, chain.bringer, chain.replica)
    }
    if let index, passedOn[index].last == chain.first - 1 {
      passedOn[index].last = chain.last
    } else if passedOn.count < LeftRuns.limit {
      passedOn.append(chain)
    }
  }

  /// The peer has so much now.
  mutating func end(_ known: VersionVector) {
    guard !isEmpty else { return }
    for (replica, left) in vector.entries where known.sequence(of: replica) >= left.sequence { vector[replica] = nil }
    passedOn.removeAll { known.sequence(of: $0.replica) >= $0.last }
  }

  mutating func forget(_ replica: ReplicaID) {
    vector[replica] = nil
    passedOn.removeAll { $0.replica == replica }
  }

  mutating func takeBack(_ back: Back) {
    guard case .from(let starts) = back else { return self = LeftRuns() }
    for (replica, start) in starts where covers(replica, start) {
      vector[replica] = start > 1 ? ChainPosition(sequence: start - 1, tip: .zero) : nil
      passedOn.removeAll { $0.replica == replica && $0.first >= start }
    }
  }

  /// What the neighbour was to pass on, and has not itself, is left to nobody from now on. Nothing where the peer has it.
  ///
  /// - Parameters:
  ///   - bringers: from whom it does not get that any more; nil: from anybody.
  ///   - held: by the neighbour.
  ///   - known: what the peer has.
  mutating func takePassedOn(
    by neighbour: DeviceMark, from bringers: Set<DeviceMark>?, beyond held: VersionVector, _ known: VersionVector
  ) -> [Chain] {
    func isMeant(_ chain: Chain) -> Bool {
      chain.neighbour == neighbour && bringers?.contains(chain.bringer) != false
        && held.sequence(of: chain.replica) < chain.last
    }
    let taken = passedOn.filter(isMeant)
    passedOn.removeAll(where: isMeant)
    return taken.filter { known.sequence(of: $0.replica) < $0.last }.map { chain in
      var lacking = chain
      let has = max(held.sequence(of: chain.replica), known.sequence(of: chain.replica))
      lacking.first = max(chain.first, has + 1)
      return lacking
    }
  }

  /// Another neighbour passes it on.
  mutating func leave(_ chain: Chain, to neighbour: DeviceMark) {
    var chain = chain
    chain.neighbour = neighbour
    if covers(chain.replica, chain.last) { note(chain) }
  }
}
