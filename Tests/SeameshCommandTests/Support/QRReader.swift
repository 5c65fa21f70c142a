/// What a camera reads of a picture that a terminal shows in half blocks: ISO/IEC 18004, versions 1 to 9 of level L, without its
/// error correction. It shares nothing with the library that draws them.
struct QRReader {
  private let dark: [[Bool]]
  private let version: Int

  /// Light modules are drawn. Nil where no such picture stands in the lines.
  init?(halfBlocks lines: [String]) {
    let picture = lines.filter { !$0.isEmpty && $0.allSatisfy { "\u{2588}\u{2580}\u{2584} ".contains($0) } }
    let rows = picture.flatMap { line in
      [line.map { $0 == " " || $0 == "\u{2584}" }, line.map { $0 == " " || $0 == "\u{2580}" }]
    }
    guard let first = rows.firstIndex(where: { $0.contains(true) }), let left = rows[first].firstIndex(of: true),
      let right = rows[first].lastIndex(of: true)
    else { return nil }
    let side = right - left + 1
    version = (side - 17) / 4
    // With a quiet zone of four on each side.
    guard Self.blocks[version] != nil, side == 17 + 4 * version, first >= 4, left >= 4,
      rows.count >= first + side + 4, rows.allSatisfy({ $0.count >= left + side + 4 })
    else { return nil }
    dark = rows[first..<first + side].map { Array($0[left..<left + side]) }
  }

  private var side: Int { dark.count }
  /// Of level L: how many blocks, and how many data words each has.
  private static let blocks = [
    1: (1, 19), 2: (1, 34), 3: (1, 55), 4: (1, 80), 5: (1, 108), 6: (2, 68), 7: (2, 78), 8: (2, 97), 9: (2, 116),
  ]
  private static let alphanumeric = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:")

  var text: String {
    var (text, bits) = ("", data[...])
    func take(_ count: Int) -> Int {
      defer { bits = bits.dropFirst(count) }
      return bits.prefix(count).reduce(0) { $0 * 2 + ($1 ? 1 : 0) }
    }
    func digits(_ value: Int, _ count: Int) -> String {
      let digits = String(value)
      return String(repeating: "0", count: max(0, count - digits.count)) + digits
    }
    while bits.count >= 4 {
      switch take(4) {
      case 0b0001:
        var left = take(10)
        while left > 0, !bits.isEmpty {
          let count = min(left, 3)
          text += digits(take([4, 7, 10][count - 1]), count)
          left -= count
        }
      case 0b0010:
        var left = take(9)
        while left > 0, !bits.isEmpty {
          let (count, value) = left > 1 ? (2, take(11)) : (1, take(6))
          text.append(contentsOf: (count == 2 ? [value / 45, value % 45] : [value]).map { Self.alphanumeric[$0 % 45] })
          left -= count
        }
      case 0b0100:
        let count = take(8)
        text += String(decoding: (0..<count).map { _ in UInt8(truncatingIfNeeded: take(8)) }, as: UTF8.self)
      default: return text
      }
    }
    return text
  }

  /// The data words block by block: they stand in turns.
  private var data: [Bool] {
    guard let (blocks, words) = Self.blocks[version] else { return [] }
    let bits = words * blocks * 8 <= self.bits.count ? self.bits : []
    guard !bits.isEmpty else { return [] }
    return (0..<blocks).flatMap { block in
      (0..<words).flatMap { word in
        let start = (word * blocks + block) * 8
        return bits[start..<start + 8]
      }
    }
  }

  /// In their order: upwards and downwards by turns, two columns wide, around what is not data.
  private var bits: [Bool] {
    var (bits, upwards) = ([Bool](), true)
    for right in stride(from: side - 1, to: 0, by: -2) {
      let column = right > 6 ? right : right - 1
      for step in 0..<side {
        let row = upwards ? side - 1 - step : step
        for column in [column, column - 1] where isData(row, column) {
          bits.append(dark[row][column] != isMasked(row, column))
        }
      }
      upwards.toggle()
    }
    return bits
  }

  private func isData(_ row: Int, _ column: Int) -> Bool {
    let far = side - 9
    let isCorner = row < 9 && column < 9 || row < 9 && column > far || row > far && column < 9
    let isVersion = version > 6 && (row < 6 && column > far - 3 || column < 6 && row > far - 3)
    return !isCorner && !isVersion && row != 6 && column != 6 && !isAlignment(row, column)
  }

  /// Centres of alignment patterns, but those that would lie in a corner.
  private func isAlignment(_ row: Int, _ column: Int) -> Bool {
    guard version > 1 else { return false }
    let last = side - 7
    let centres = version > 6 ? [6, (6 + last) / 2, last] : [6, last]
    return centres.contains { y in
      centres.contains { x in
        let isInCorner = y == 6 && x == 6 || y == 6 && x == last || y == last && x == 6
        return !isInCorner && abs(row - y) <= 2 && abs(column - x) <= 2
      }
    }
  }

  private var mask: Int { dark[8][2...4].reduce(0) { $0 * 2 + ($1 ? 1 : 0) } ^ 0b101 }

  private func isMasked(_ row: Int, _ column: Int) -> Bool {
    let product = row * column
    return switch mask {
    case 0: (row + column) % 2 == 0
    case 1: row % 2 == 0
    case 2: column % 3 == 0
    case 3: (row + column) % 3 == 0
    case 4: (row / 2 + column / 3) % 2 == 0
    case 5: product % 2 + product % 3 == 0
    case 6: (product % 2 + product % 3) % 2 == 0
    default: ((row + column) % 2 + product % 3) % 2 == 0
    }
  }
}
