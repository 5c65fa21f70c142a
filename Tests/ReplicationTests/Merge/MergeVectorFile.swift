import Foundation

/// Apart from the rest, since Foundation has an `Operation` of its own.
enum MergeVectorFile {
  static func bytes(_ name: String) throws -> [UInt8] {
    let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    return Array(try Data(contentsOf: folder.appending(path: "Vectors/\(name).json")))
  }
}
