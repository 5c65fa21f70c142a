import Replication
import Wire

/// What one run measured. Shows each figure as soon as it is known.
final class BenchReport {
  let machine: Machine
  private(set) var figures: [Figure] = []
  private let show: (String) -> Void
  private let start = ContinuousClock.now

  /// `show` takes lines of text for people.
  init(machine: Machine, show: @escaping (String) -> Void) {
    (self.machine, self.show) = (machine, show)
    for row in machine.rows { show(row.name + String(repeating: " ", count: max(1, 12 - row.name.count)) + row.value) }
    show("")
  }

  func add(_ figures: Figure...) {
    self.figures += figures
    for figure in figures { show(figure.line) }
  }

  /// After the last figure. `isQuick`: sizes were small.
  func finish(isQuick: Bool) {
    show("")
    show(total + (isQuick ? "; small sizes, so no figure is to be quoted" : ""))
  }

  var allHold: Bool { figures.allSatisfy { $0.holds ?? true } }

  private var seconds: Double { (ContinuousClock.now - start).asSeconds }

  private var total: String {
    let bars = figures.compactMap(\.holds)
    let short = figures.filter { $0.holds == false }.map(\.name)
    let sum = "\(figures.count) figures in \(Figure.text(seconds.rounded())) s, "
    if bars.isEmpty { return sum + "none of them held against a bar" }
    if short.isEmpty { return sum + "all \(bars.count) bars hold" }
    return sum + "\(bars.count - short.count) of \(bars.count) bars hold; short: \(short.joined(separator: "; "))"
  }

  var json: String {
    let facts = machine.rows.map { (key: Text($0.name), value: Value.string(Text($0.value))) }
    var map = ValueMap()
    for fact in facts { map[fact.key] = fact.value }
    return ExtendedJSON.object([
      ("machine", .map(map)), ("figures", .array(figures.map { .map($0.map) })), ("allHold", .bool(allHold)),
      ("seconds", .double(seconds)),
    ])
  }
}
