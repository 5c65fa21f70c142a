import Foundation
import Testing

/// What the interfaces of the calling thread's network namespace have counted.
enum InterfaceCounter {
  /// Received. On loopback that is all that was sent, too.
  static func bytes(of interface: String) throws -> UInt64 {
    let text = try String(contentsOfFile: "/proc/thread-self/net/dev", encoding: .utf8)
    let line = try #require(text.split(separator: "\n").first { $0.contains("\(interface):") })
    let numbers = try #require(line.split(separator: ":").last).split(separator: " ")
    return try #require(numbers.first.flatMap { UInt64($0) })
  }
}
