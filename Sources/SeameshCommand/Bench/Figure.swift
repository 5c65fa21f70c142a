import Replication

/// One measured number, with what it is a measure of and the bar it is held against.
struct Figure: Sendable, Equatable {
  enum Floor: Sendable, Equatable {
    case atLeast(Double)
    case atMost(Double)

    func holds(_ value: Double) -> Bool {
      switch self {
      case .atLeast(let bound): value >= bound
      case .atMost(let bound): value <= bound
      }
    }
  }

  /// Short and stable, for scripts.
  let key: String
  let name: String
  let value: Double
  let unit: String
  /// What it is divided by, or how it was taken.
  let basis: String
  let floor: Floor?

  init(_ key: String, _ name: String, _ value: Double, _ unit: String, basis: String = "", floor: Floor? = nil) {
    (self.key, self.name, self.value, self.unit) = (key, name, value, unit)
    (self.basis, self.floor) = (basis, floor)
  }

  var holds: Bool? { floor.map { $0.holds(value) } }

  /// Three significant digits below 1,000, whole numbers above.
  static func text(_ value: Double) -> String {
    guard value.isFinite else { return "-" }
    if value.magnitude >= 100 || value == value.rounded() { return grouped(Int64(value.rounded())) }
    let scale: Double = value >= 10 ? 10 : value >= 1 ? 100 : 1_000
    return "\((value * scale).rounded() / scale)"
  }

  private static func grouped(_ number: Int64) -> String {
    let digits = Array(String(number.magnitude))
    let groups = digits.indices.map { ($0 > 0 && (digits.count - $0) % 3 == 0 ? "," : "") + String(digits[$0]) }
    return (number < 0 ? "-" : "") + groups.joined()
  }

  /// Name, value with its unit, whether the bar holds, and how it was taken.
  var line: String {
    let value = Figure.text(value)
    var line = name + String(repeating: " ", count: max(1, Figure.nameWidth - name.count))
    line += String(repeating: " ", count: max(0, Figure.valueWidth - value.count)) + value
    if !unit.isEmpty { line += " " + unit }
    if let holds { line += "  [\(floorText): \(holds ? "holds" : "FALLS SHORT")]" }
    return basis.isEmpty ? line : line + "  (\(basis))"
  }

  private static let nameWidth = 48
  private static let valueWidth = 8

  private var floorText: String {
    switch floor {
    case .atLeast(let bound): ">= \(Figure.text(bound))"
    case .atMost(let bound): "<= \(Figure.text(bound))"
    case nil: ""
    }
  }
}

extension Figure {
  var map: ValueMap {
    var map = ValueMap()
    map["key"] = .string(Text(key))
    map["name"] = .string(Text(name))
    map["value"] = .double(value.isFinite ? value : 0)
    map["unit"] = .string(Text(unit))
    map["basis"] = .string(Text(basis))
    if let floor, let holds {
      switch floor {
      case .atLeast(let bound): map["atLeast"] = .double(bound)
      case .atMost(let bound): map["atMost"] = .double(bound)
      }
      map["holds"] = .bool(holds)
    }
    return map
  }
}
