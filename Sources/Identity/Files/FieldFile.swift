import Replication

/// The text form of small files: a title that people recognise, `#` remarks, `name: value` lines, and a check line that
/// finds any damage to the title and the values.
struct FieldFile: Equatable {
  let title: String
  var remarks: [String] = []
  var fields: [(name: String, value: String)]

  private static let checkName = "check"
  private static let checkByteCount = 8

  static func == (a: FieldFile, b: FieldFile) -> Bool {
    a.title == b.title && a.fields.elementsEqual(b.fields, by: ==)
  }

  enum Invalid: Error, Equatable {
    case notUTF8
    case otherTitle
    case line(Int)
    case checkMissing
    case checkDiffers
    case field(String)

    var reason: String {
      switch self {
      case .notUTF8: "it is not text"
      case .otherTitle: "its first line is not the expected title"
      case .line(let number): "line \(number) is not understood"
      case .checkMissing: "it ends too early"
      case .checkDiffers: "its content does not agree with its check line"
      case .field(let name): "its '\(name)' is missing or wrong"
      }
    }
  }

  var text: String {
    var lines = [title] + remarks.map { "# " + $0 }
    lines += fields.map { "\($0.name): \($0.value)" }
    lines.append("\(FieldFile.checkName): \(check)")
    return lines.joined(separator: "\n") + "\n"
  }

  private var check: String {
    let covered = ([title] + fields.map { "\($0.name): \($0.value)" }).joined(separator: "\n")
    return Hex.encode(SHA256.hash(Array(covered.utf8)).bytes.prefix(FieldFile.checkByteCount))
  }

  /// Remarks are passed over, so that people may add their own.
  static func parse(_ content: [UInt8], title: String) throws(Invalid) -> FieldFile {
    guard let text = String(validating: content, as: UTF8.self) else { throw .notUTF8 }
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    guard let first = lines.first, first.utf8.elementsEqual(title.utf8) else { throw .otherTitle }
    guard lines.last == "" else { throw .checkMissing }
    var file = FieldFile(title: title, fields: [])
    var found: String?
    for (number, line) in lines.enumerated().dropFirst().dropLast() where line.utf8.first != UInt8(ascii: "#") {
      guard found == nil, let colon = line.firstRange(of: ": ") else { throw .line(number + 1) }
      let (name, value) = (String(line[..<colon.lowerBound]), String(line[colon.upperBound...]))
      if name == checkName { found = value } else { file.fields.append((name, value)) }
    }
    guard let found else { throw .checkMissing }
    guard found.utf8.elementsEqual(file.check.utf8) else { throw .checkDiffers }
    return file
  }

  /// The value of a field that must stand exactly once.
  func value(_ name: String) throws(Invalid) -> String {
    let values = fields.filter { $0.name == name }
    guard values.count == 1, let value = values.first?.value else { throw .field(name) }
    return value
  }

  /// The values of a field that may stand any number of times.
  func values(_ name: String) -> [String] { fields.filter { $0.name == name }.map(\.value) }

  func value<Parsed>(_ name: String, _ parse: (String) -> Parsed?) throws(Invalid) -> Parsed {
    guard let parsed = parse(try value(name)) else { throw .field(name) }
    return parsed
  }
}
