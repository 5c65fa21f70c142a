import Glibc

/// Why the local interface could not be opened.
package enum LocalServerError: Error, Equatable, CustomStringConvertible {
  case system(String, Int32)
  /// Not 64 hexadecimal digits.
  case damagedToken(String)
  case notLoopback(String)
  case pathTooLong(String, limit: Int)
  case refusedByLibrary

  package var description: String {
    switch self {
    case .system(let what, let code): "\(what): \(String(cString: strerror(code)))"
    case .damagedToken(let path): "\(path) does not hold a token; remove it and a new one is made"
    case .notLoopback(let address):
      "the local interface listens on this machine only, not on \(address); give 127.0.0.1:PORT or [::1]:PORT"
    case .pathTooLong(let path, let limit): "the socket path \(path) is longer than \(limit) bytes"
    case .refusedByLibrary: "libmicrohttpd did not start (are threads or file descriptors exhausted?)"
    }
  }
}
