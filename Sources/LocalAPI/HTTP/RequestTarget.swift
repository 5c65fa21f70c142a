import Replication

/// The request target, decoded from the raw bytes of the request line.
///
/// libmicrohttpd decodes a path before it is split and ends it at `%00`, so that an id with a slash or a zero byte would
/// name another document; here the path is split first and each segment decoded by itself (RFC 3986 §2.4, §3.3).
struct RequestTarget {
  let segments: [Text]
  let query: [(name: Text, value: Text)]

  init(raw: String) throws(Problem) {
    let parts = raw.utf8.split(separator: UInt8(ascii: "?"), maxSplits: 1, omittingEmptySubsequences: false)
    guard let path = parts.first, path.first == UInt8(ascii: "/") else {
      throw .badRequest("the request target must be a path that begins with /")
    }
    var segments: [Text] = []
    for segment in path.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
      guard !segment.isEmpty else {
        throw .badRequest("the path has an empty segment: names and ids in it have at least one byte")
      }
      segments.append(try percentDecoded(segment, plusIsSpace: false))
    }
    self.segments = segments
    self.query = parts.count == 2 ? try RequestTarget.parameters(parts[1]) : []
  }

  subscript(parameter name: Text) -> Text? { query.first { $0.name == name }?.value }

  private static func parameters(_ query: Substring.UTF8View) throws(Problem) -> [(name: Text, value: Text)] {
    var parameters: [(name: Text, value: Text)] = []
    for field in query.split(separator: UInt8(ascii: "&")) {
      let sides = field.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      let name = try percentDecoded(sides[0], plusIsSpace: true)
      guard !parameters.contains(where: { $0.name == name }) else {
        throw .badRequest("the query parameter \(name.string) stands twice")
      }
      guard parameters.count < ServerLimit.queryParameters else {
        throw .limit(.badRequest, "one query", ServerLimit.queryParameters, unit: "parameters")
      }
      parameters.append((name, sides.count == 2 ? try percentDecoded(sides[1], plusIsSpace: true) : ""))
    }
    return parameters
  }
}

private func percentDecoded(_ field: Substring.UTF8View, plusIsSpace: Bool) throws(Problem) -> Text {
  var bytes: [UInt8] = []
  bytes.reserveCapacity(field.count)
  var rest = field[...]
  while let byte = rest.popFirst() {
    switch byte {
    case UInt8(ascii: "%"):
      guard let high = rest.popFirst().flatMap(hexDigit), let low = rest.popFirst().flatMap(hexDigit) else {
        throw .badRequest("the path or query has a % that is not followed by two hexadecimal digits")
      }
      bytes.append(high << 4 | low)
    case UInt8(ascii: "+") where plusIsSpace: bytes.append(UInt8(ascii: " "))
    default: bytes.append(byte)
    }
  }
  guard !bytes.contains(0) else { throw .badRequest("the path or query has a zero byte (%00)") }
  guard let string = String(validating: bytes, as: UTF8.self) else {
    throw .badRequest("the path or query is not UTF-8 once its percent signs are decoded")
  }
  return Text(string)
}

private func hexDigit(_ byte: UInt8) -> UInt8? {
  switch byte {
  case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
  case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
  case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
  default: nil
  }
}

/// A path segment with everything but RFC 3986's unreserved characters escaped.
package func percentEncoded(_ text: Text) -> String {
  let digits = Array("0123456789ABCDEF".utf8)
  var out: [UInt8] = []
  for byte in text.utf8 {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
      UInt8(ascii: "~"):
      out.append(byte)
    default: out += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }
  }
  return String(decoding: out, as: UTF8.self)
}
