/// Where one session stands with the statements of rooms.
struct RoomExchange: Sendable {
  /// Rooms of which the peer told its tips since the last comparison: each is answered once.
  private(set) var heard: Set<PartitionID> = []
  /// Rooms of which the peer was told tips, and may ask for what it lacks.
  private var open: Set<PartitionID> = []
  /// The comparisons in which rooms that still differ were told last.
  private var toldIn: [PartitionID: UInt64] = [:]

  /// Those that have ended for the peer's user are told once.
  var tellingEnded = Once()

  /// Rooms whose tips are told for one comparison. Where statements come of it, the next one follows at once.
  static let tellLimit = 256
  static let answerLimit = 1_024

  /// Those of the rooms that differ which have waited longest.
  func next(of differing: Set<PartitionID>) -> [PartitionID] {
    let order = differing.sorted { (toldIn[$0, default: 0], $0) < (toldIn[$1, default: 0], $1) }
    return Array(order.prefix(RoomExchange.tellLimit))
  }

  mutating func tell(_ room: PartitionID, in comparison: UInt64) {
    open.insert(room)
    toldIn[room] = comparison
  }

  /// Rooms that the two hold alike by now.
  mutating func forgetLevel(besides differing: Set<PartitionID>) {
    toldIn = toldIn.filter { differing.contains($0.key) || heard.contains($0.key) }
    open.formIntersection(toldIn.keys)
  }

  /// Whether the peer's tips are to be answered.
  mutating func hear(_ room: PartitionID) -> Bool {
    heard.count < RoomExchange.answerLimit && heard.insert(room).inserted
  }

  /// Whether the peer may ask for statements: once for each time that it was told of them.
  mutating func takeAnswer(_ room: PartitionID) -> Bool { open.remove(room) != nil }

  mutating func concludeComparison() { heard = [] }
}
