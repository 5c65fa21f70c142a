import Foundation
import Glibc

/// A directory for one run of measurements, taken away with everything in it at the end.
final class BenchScratch {
  let path: String

  init(in parent: String) throws(Failure) {
    var template = Array((parent + "/seamesh-bench.XXXXXX").utf8CString)
    guard mkdtemp(&template) != nil else {
      throw Failure(.failed, "no directory can be made in \(parent): \(String(cString: strerror(errno)))")
    }
    path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  deinit { remove() }

  func remove() { try? FileManager.default.removeItem(atPath: path) }

  /// A directory that was made in it, with what it holds.
  func remove(_ name: String) { try? FileManager.default.removeItem(atPath: path + "/" + name) }

  /// An empty directory that only its owner may enter.
  func directory(_ name: String) throws(Failure) -> String {
    let made = path + "/" + name
    guard mkdir(made, 0o700) == 0 else {
      throw Failure(.failed, "\(made) cannot be made: \(String(cString: strerror(errno)))")
    }
    return made
  }
}
