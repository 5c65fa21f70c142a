/// First in, first out, in constant time each.
struct Queue<Element> {
  private var elements: [Element] = []
  private var head = 0

  var isEmpty: Bool { head >= elements.count }

  mutating func put(_ element: Element) { elements.append(element) }
  mutating func put(_ more: [Element]) { elements += more }

  mutating func take() -> Element? {
    guard head < elements.count else { return nil }
    defer {
      head += 1
      // Moving the rest down only when half is taken keeps the cost per element constant.
      if head * 2 >= elements.count {
        elements.removeFirst(head)
        head = 0
      }
    }
    return elements[head]
  }
}
