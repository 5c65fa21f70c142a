import Replication

/// Chains by turns, in the order in which their next runs arrived: a heap of what comes next of each.
struct ArrivalMerge {
  private struct Head {
    let replica: ReplicaID
    var places: ArraySlice<RunPlace>
    var isAtEnd: Bool

    var arrival: Int64 { places.first?.arrival ?? .max }
  }

  private var heads: [Head] = []
  /// Of a chain, above a change, so many at the most.
  private let places: (ReplicaID, UInt64, Int) throws -> [RunPlace]

  /// Asked for of one chain at once.
  private static let step = 16

  init(places: @escaping (ReplicaID, UInt64, Int) throws -> [RunPlace]) { self.places = places }

  mutating func add(_ replica: ReplicaID, after sequence: UInt64) throws {
    let first = try places(replica, sequence, ArrivalMerge.step)
    guard !first.isEmpty else { return }
    heads.append(Head(replica: replica, places: first[...], isAtEnd: first.count < ArrivalMerge.step))
    rise(heads.count - 1)
  }

  mutating func next() throws -> (replica: ReplicaID, place: RunPlace)? {
    guard let replica = heads.first?.replica, let place = heads[0].places.popFirst() else { return nil }
    if heads[0].places.isEmpty, !heads[0].isAtEnd {
      let more = try places(replica, place.last, ArrivalMerge.step)
      (heads[0].places, heads[0].isAtEnd) = (more[...], more.count < ArrivalMerge.step)
    }
    if heads[0].places.isEmpty {
      heads.swapAt(0, heads.count - 1)
      heads.removeLast()
    }
    sink()
    return (replica, place)
  }

  private mutating func rise(_ start: Int) {
    var index = start
    while index > 0, case let parent = (index - 1) / 2, heads[index].arrival < heads[parent].arrival {
      heads.swapAt(index, parent)
      index = parent
    }
  }

  private mutating func sink() {
    var index = 0
    while case let left = 2 * index + 1, left < heads.count {
      let right = left + 1
      let least = right < heads.count && heads[right].arrival < heads[left].arrival ? right : left
      guard heads[least].arrival < heads[index].arrival else { return }
      heads.swapAt(index, least)
      index = least
    }
  }
}
