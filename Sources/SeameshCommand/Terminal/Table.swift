/// Rows in aligned columns under a header.
struct Table {
  private var rows: [[String]]
  private let rightAligned: Set<Int>

  /// `rightAligned`: indices of columns that hold numbers.
  init(_ header: [String], rightAligned: Set<Int> = []) {
    rows = [header]
    self.rightAligned = rightAligned
  }

  mutating func append(_ row: [String]) { rows.append(row.map(shown)) }

  func print(on terminal: Terminal) {
    let widths = (0..<(rows.first?.count ?? 0)).map { column in
      rows.map { $0.indices.contains(column) ? $0[column].count : 0 }.max() ?? 0
    }
    for (index, row) in rows.enumerated() {
      let line = zip(row, widths).enumerated().map { column, cell in
        let padding = String(repeating: " ", count: max(0, cell.1 - cell.0.count))
        return rightAligned.contains(column) ? padding + cell.0 : cell.0 + padding
      }.joined(separator: "  ")
      let trimmed = String(line.reversed().drop { $0 == " " }.reversed())
      terminal.print(index == 0 ? terminal.styled(trimmed, .bold) : trimmed)
    }
  }
}

/// `1.5 MB` and the like, in powers of 1000.
func byteCount(_ bytes: Int64) -> String {
  let units = ["B", "kB", "MB", "GB", "TB"]
  var (value, unit) = (Double(bytes), 0)
  while value >= 1_000, unit < units.count - 1 { (value, unit) = (value / 1_000, unit + 1) }
  return unit == 0 ? "\(bytes) B" : "\(Double(Int(value * 10)) / 10) \(units[unit])"
}

/// `3 d 4 h`, `12 min 5 s`: the two largest units.
func duration(milliseconds: Int64) -> String {
  let seconds = milliseconds / 1_000
  let parts = [(seconds / 86_400, "d"), (seconds / 3_600 % 24, "h"), (seconds / 60 % 60, "min"), (seconds % 60, "s")]
  let shown = parts.drop { $0.0 == 0 }.prefix(2).map { "\($0.0) \($0.1)" }
  return shown.isEmpty ? "0 s" : shown.joined(separator: " ")
}
