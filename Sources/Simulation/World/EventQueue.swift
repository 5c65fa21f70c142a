/// What is to happen when: a binary heap by time, equal times in the order in which they were put in.
struct EventQueue<Event> {
  private struct Item {
    let time: UInt64
    let serial: UInt64
    let event: Event

    func precedes(_ other: Item) -> Bool { time == other.time ? serial < other.serial : time < other.time }
  }

  private var heap: [Item] = []
  private var serial: UInt64 = 0

  var count: Int { heap.count }

  mutating func put(_ event: Event, at time: UInt64) {
    serial += 1
    heap.append(Item(time: time, serial: serial, event: event))
    var child = heap.count - 1
    while child > 0 {
      let parent = (child - 1) / 2
      guard heap[child].precedes(heap[parent]) else { return }
      heap.swapAt(child, parent)
      child = parent
    }
  }

  mutating func take() -> (time: UInt64, event: Event)? {
    guard let first = heap.first, let last = heap.popLast() else { return nil }
    if !heap.isEmpty {
      heap[0] = last
      sift()
    }
    return (first.time, first.event)
  }

  private mutating func sift() {
    var parent = 0
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && heap[child].precedes(heap[least]) {
        least = child
      }
      guard least != parent else { return }
      heap.swapAt(parent, least)
      parent = least
    }
  }
}
