import Replication

/// Which listener a request came in by.
enum Channel: Sendable {
  /// The peer's user id was checked.
  case unixSocket
  /// The token, Host and Origin were checked.
  case loopback
}

/// A whole request, with its body, that passed admission and found its route.
struct Request {
  let channel: Channel
  let target: RequestTarget
  /// Path parameters by name, as text.
  let parameters: [String: Text]
  let headers: HeaderList
  let body: [UInt8]
  let contentType: MediaType?
  /// The connection's socket, to see whether the client is still there.
  let socket: Int32

  /// A path parameter that the route's template names.
  func parameter(_ name: String) -> Text { parameters[name] ?? "" }
}

/// Headers by lower-case name, in the order in which they came.
struct HeaderList {
  private(set) var entries: [(name: String, value: String)] = []

  mutating func append(_ name: String, _ value: String) { entries.append((name.lowercased(), value)) }

  func all(_ name: String) -> [String] { entries.filter { $0.name == name }.map(\.value) }

  /// Nil where it is absent; the first where it stands more than once.
  subscript(name: String) -> String? { entries.first { $0.name == name }?.value }
}
