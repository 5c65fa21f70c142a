import CQREncode

/// Text as a square of dark and light modules (ISO/IEC 18004), for a camera.
struct QRCode {
  /// Modules of one side, without the quiet zone.
  let side: Int
  private let dark: [Bool]

  /// Light modules around it that a reader needs.
  static let quietZone = 4

  /// Nil where it does not fit: about 3,000 letters and digits.
  init?(_ text: String) {
    guard let code = QRcode_encodeString(text, 0, QR_ECLEVEL_L, QR_MODE_8, 1) else { return nil }
    defer { QRcode_free(code) }
    let side = Int(code.pointee.width)
    guard side > 0, let data = code.pointee.data else { return nil }
    self.side = side
    // The lowest bit is the colour.
    dark = (0..<side * side).map { data[$0] & 1 == 1 }
  }

  func isDark(_ row: Int, _ column: Int) -> Bool {
    (0..<side).contains(row) && (0..<side).contains(column) && dark[row * side + column]
  }

  private var range: Range<Int> { -QRCode.quietZone..<side + QRCode.quietZone }

  /// Two rows of modules a line. Light modules are drawn, since terminals are dark more often than not: `colours` sets both
  /// colours, so that it is right on either.
  func lines(colours: Bool) -> [String] {
    stride(from: range.lowerBound, to: range.upperBound, by: 2).map { row in
      let line = range.map { column in
        switch (isDark(row, column), isDark(row + 1, column)) {
        case (false, false): "\u{2588}"
        case (false, true): "\u{2580}"
        case (true, false): "\u{2584}"
        case (true, true): " "
        }
      }.joined()
      return colours ? "\u{1b}[97;40m\(line)\u{1b}[0m" : line
    }
  }

  /// A picture that scales.
  var svg: String {
    let size = range.count
    var path = ""
    for row in 0..<side {
      for column in 0..<side where isDark(row, column) {
        path += "M\(column + QRCode.quietZone),\(row + QRCode.quietZone)h1v1h-1z"
      }
    }
    return """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(size) \(size)" width="\(size * 8)" height="\(size * 8)" \
      shape-rendering="crispEdges"><rect width="\(size)" height="\(size)" fill="#fff"/><path d="\(path)"/></svg>

      """
  }

  /// The picture that every program reads: PBM (P1), eight pixels a module.
  var portableBitmap: [UInt8] {
    let scale = 8
    var out = Array("P4\n\(range.count * scale) \(range.count * scale)\n".utf8)
    for row in range {
      // Eight pixels of one module are a byte.
      let line = range.map { UInt8(isDark(row, $0) ? 0xff : 0) }
      for _ in 0..<scale { out += line }
    }
    return out
  }
}
