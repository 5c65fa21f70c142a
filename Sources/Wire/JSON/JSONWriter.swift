import Replication

extension ExtendedJSON {
  /// Appends relaxed Extended JSON: on one line, or with line breaks and two spaces for each level.
  ///
  /// Reading it again with ``parse(_:limits:operators:)-([UInt8],_,_)`` gives the same value. Control characters are
  /// escaped, those beyond ASCII too, so that the text can be shown on a terminal.
  package static func write(_ value: Value, into out: inout [UInt8], pretty: Bool = false) {
    JSONWriter.append(value, to: &out, indent: pretty ? 0 : nil, isRoot: true)
  }

  package static func text(_ value: Value, pretty: Bool = false) -> String {
    var out: [UInt8] = []
    write(value, into: &out, pretty: pretty)
    return String(decoding: out, as: UTF8.self)
  }
}

enum JSONWriter {
  /// `indent`: level of indentation of what surrounds the value; nil writes on one line.
  static func append(_ value: Value, to out: inout [UInt8], indent: Int?, isRoot: Bool = false) {
    switch value {
    case .null: append("null", to: &out)
    case .bool(let value): append(value ? "true" : "false", to: &out)
    case .int(let value): append(value.description, to: &out)
    // The shortest text that reads back the same, always with a point or an exponent: so it stays a double.
    case .double(let value): append(value.description, to: &out)
    case .string(let text): appendString(text.string, to: &out)
    case .bytes(let bytes): appendBinary(bytes, subtype: "00", to: &out)
    case .date(let milliseconds): appendDate(milliseconds, to: &out)
    case .objectID(let id): append(#"{"$oid":"\#(hexadecimal(id.bytes))"}"#, to: &out)
    case .uuid(let id): appendBinary(id.bytes, subtype: "04", to: &out)
    case .blob(let blob): appendBlob(blob, to: &out)
    case .array(let items): append(items, to: &out, indent: indent)
    case .map(let map):
      let isLiteral = map.entries.contains { entry in
        entry.key.startsWithDollar && (isRoot || JSONWrapper.isReserved(entry.key))
      }
      if isLiteral { append(#"{"$literal":"#, to: &out) }
      append(map, to: &out, indent: indent)
      if isLiteral { append("}", to: &out) }
    }
  }

  private static func append(_ items: [Value], to out: inout [UInt8], indent: Int?) {
    // Coordinates and the like read better on one line.
    let indent = items.allSatisfy(\.isScalar) ? nil : indent
    out.append(UInt8(ascii: "["))
    for (index, item) in items.enumerated() {
      if index > 0 { out.append(UInt8(ascii: ",")) }
      if let indent { appendLineBreak(indent + 1, to: &out) }
      append(item, to: &out, indent: indent.map { $0 + 1 })
    }
    if let indent, !items.isEmpty { appendLineBreak(indent, to: &out) }
    out.append(UInt8(ascii: "]"))
  }

  private static func append(_ map: ValueMap, to out: inout [UInt8], indent: Int?) {
    out.append(UInt8(ascii: "{"))
    for (index, entry) in map.entries.enumerated() {
      if index > 0 { out.append(UInt8(ascii: ",")) }
      if let indent { appendLineBreak(indent + 1, to: &out) }
      appendString(entry.key.string, to: &out)
      out.append(UInt8(ascii: ":"))
      if indent != nil { out.append(UInt8(ascii: " ")) }
      append(entry.value, to: &out, indent: indent.map { $0 + 1 })
    }
    if let indent, !map.isEmpty { appendLineBreak(indent, to: &out) }
    out.append(UInt8(ascii: "}"))
  }

  private static func appendLineBreak(_ indent: Int, to out: inout [UInt8]) {
    out.append(UInt8(ascii: "\n"))
    out.append(contentsOf: repeatElement(UInt8(ascii: " "), count: 2 * indent))
  }

  private static func append(_ text: String, to out: inout [UInt8]) { out.append(contentsOf: text.utf8) }

  private static func appendBinary(_ bytes: [UInt8], subtype: String, to out: inout [UInt8]) {
    append(#"{"$binary":{"base64":""#, to: &out)
    appendBase64(bytes, to: &out)
    append(#"","subType":"\#(subtype)"}}"#, to: &out)
  }

  private static func appendDate(_ milliseconds: Int64, to out: inout [UInt8]) {
    if let text = CalendarTime.text(milliseconds) {
      append(#"{"$date":""#, to: &out)
      out.append(contentsOf: text)
      append(#""}"#, to: &out)
    } else {
      append(#"{"$date":{"$numberLong":"\#(milliseconds)"}}"#, to: &out)
    }
  }

  private static func appendBlob(_ blob: BlobReference, to out: inout [UInt8]) {
    append(#"{"$blob":{"hash":"\#(hexadecimal(blob.hash.bytes))","size":\#(blob.size),"type":"#, to: &out)
    appendString(blob.type.string, to: &out)
    if let list = blob.listHash { append(#","list":"\#(hexadecimal(list.bytes))""#, to: &out) }
    append("}}", to: &out)
  }

  static func appendString(_ string: String, to out: inout [UInt8]) {
    out.append(UInt8(ascii: "\""))
    // C2 begins the control characters U+0080 to U+009F, but also the most common signs of Latin 1.
    let isPlain = string.utf8.allSatisfy { byte in
      byte >= 0x20 && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\") && byte != 0x7f && byte != 0xc2
    }
    if isPlain {
      out.append(contentsOf: string.utf8)
    } else {
      for scalar in string.unicodeScalars { appendEscaped(scalar, to: &out) }
    }
    out.append(UInt8(ascii: "\""))
  }

  private static func appendEscaped(_ scalar: Unicode.Scalar, to out: inout [UInt8]) {
    switch scalar.value {
    case 0x22: append(#"\""#, to: &out)
    case 0x5c: append(#"\\"#, to: &out)
    case 0x08: append(#"\b"#, to: &out)
    case 0x09: append(#"\t"#, to: &out)
    case 0x0a: append(#"\n"#, to: &out)
    case 0x0c: append(#"\f"#, to: &out)
    case 0x0d: append(#"\r"#, to: &out)
    case 0..<0x20, 0x7f..<0xa0: append(#"\u00"# + hexadecimal([UInt8(scalar.value)]), to: &out)
    default: out.append(contentsOf: UTF8.encode(scalar).map(Array.init) ?? [])
    }
  }
}

extension Value {
  fileprivate var isScalar: Bool {
    switch self {
    case .array, .map: false
    default: true
    }
  }
}
