#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// Why a file of the data directory could not be used. ``description`` is for people, with what to do next.
package enum FileError: Error, Equatable, CustomStringConvertible {
  case missing(path: String)
  case exists(path: String)
  /// A call of the operating system failed.
  case failed(operation: String, path: String, code: Int32)
  case notRegular(path: String)
  case otherOwner(path: String, owner: UInt32)
  /// Mode bits of the file or directory that give others a right.
  case openToOthers(path: String, mode: UInt32, isDirectory: Bool)
  case sharedDirectory(path: String)
  case tooLarge(path: String, limit: Int)
  case damaged(path: String, reason: String)

  package var description: String {
    switch self {
    case .missing(let path): "\(path) is missing."
    case .exists(let path): "\(path) is there already and is never overwritten; move it away first."
    case .failed(_, let path, ENOTDIR): "\(path) is not a directory, or lies in none."
    case .failed(let operation, let path, let code):
      "\(operation) of \(path) failed: \(String(cString: strerror(code)))."
    case .notRegular(let path): "\(path) is not a plain file; links and devices are refused."
    case .otherOwner(let path, let owner):
      "\(path) belongs to user \(owner), not to you; run as that user, or: chown \(geteuid()) '\(path)'"
    case .openToOthers(let path, let mode, let isDirectory):
      "\(path) is open to other users (mode \(String(mode, radix: 8))); run: chmod \(isDirectory ? 700 : 600) '\(path)'"
    case .sharedDirectory(let path):
      "\(path) is used for other things too; name a directory of its own, such as '\(path)/seamesh'"
    case .tooLarge(let path, let limit): "\(path) is larger than the \(limit) bytes it may have."
    case .damaged(let path, let reason): "\(path) is damaged: \(reason). Put back a copy of it if you have one."
    }
  }

  static func last(_ operation: String, _ path: String) -> FileError {
    let code = errno
    return code == ENOENT ? .missing(path: path) : .failed(operation: operation, path: path, code: code)
  }
}
