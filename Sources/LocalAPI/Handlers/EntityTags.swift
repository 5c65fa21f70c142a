/// What `If-Match` or `If-None-Match` holds (RFC 9110 §8.8.3, §13.1): `*`, or a list of entity tags.
enum EntityTags: Equatable {
  case any
  case list([Tag])

  struct Tag: Equatable {
    /// Without its quotes.
    let text: String
    let isWeak: Bool
  }

  /// The values of all headers of one name; nil where they are something else.
  init?(_ values: [String]) {
    let joined = values.joined(separator: ",")
    if joined.utf8.elementsEqual("*".utf8) {
      self = .any
      return
    }
    var tags: [Tag] = []
    var rest = joined.utf8[...]
    while let tag = EntityTags.takeTag(from: &rest) { tags.append(tag) }
    guard rest.isEmpty, !tags.isEmpty else { return nil }
    self = .list(tags)
  }

  /// Those that can match in a strong comparison, which a write asks for.
  var strong: [String] {
    if case .list(let tags) = self { tags.filter { !$0.isWeak }.map(\.text) } else { [] }
  }

  /// Those that can match in a weak comparison, which is enough where nothing is to be written.
  var all: [String] {
    if case .list(let tags) = self { tags.map(\.text) } else { [] }
  }

  /// Takes one tag with the comma behind it. Nil, with `rest` as it was from there on, where none begins.
  private static func takeTag(from rest: inout Substring.UTF8View) -> Tag? {
    let (comma, space, tab) = (UInt8(ascii: ","), UInt8(ascii: " "), UInt8(ascii: "\t"))
    rest = rest.drop { $0 == comma || $0 == space || $0 == tab }
    let isWeak = rest.starts(with: "W/".utf8)
    let quoted = isWeak ? rest.dropFirst(2) : rest
    guard quoted.first == UInt8(ascii: "\""), let end = quoted.dropFirst().firstIndex(of: UInt8(ascii: "\"")) else {
      return nil
    }
    let after = quoted[quoted.index(after: end)...].drop { $0 == space || $0 == tab }
    guard after.isEmpty || after.first == comma else { return nil }
    rest = after
    return Tag(text: String(Substring(quoted[..<end].dropFirst())), isWeak: isWeak)
  }
}
