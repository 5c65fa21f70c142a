import Foundation

/// The files of this package.
enum SourceTree {
  static let root: URL = {
    var folder = URL(filePath: #filePath).deletingLastPathComponent()
    while folder.path != "/", !exists(folder.appending(path: "Package.swift")) { folder.deleteLastPathComponent() }
    return folder
  }()

  private static func exists(_ url: URL) -> Bool { FileManager.default.fileExists(atPath: url.path) }

  /// Swift files below a folder, by their paths from the root, in order.
  static func swiftFiles(_ folder: String) throws -> [(path: String, text: String)] {
    try files(folder).filter { $0.hasSuffix(".swift") }.map { path in
      (path, try String(contentsOf: root.appending(path: path), encoding: .utf8))
    }
  }

  /// Text files that belong to the package: neither built, nor of version control, nor binary.
  static func textFiles() throws -> [(path: String, text: String)] {
    // In a linked work tree .git is a file.
    let outside = [".git", ".build", ".swiftpm", ".index-build"]
    return try files("").filter { path in
      !outside.contains { path == $0 || path.hasPrefix($0 + "/") }
    }.compactMap { path in
      let bytes = try Data(contentsOf: root.appending(path: path))
      guard bytes.range(of: Data([0])) == nil, let text = String(data: bytes, encoding: .utf8) else { return nil }
      return (path, text)
    }
  }

  private static func files(_ folder: String) throws -> [String] {
    let start = folder.isEmpty ? root : root.appending(path: folder)
    let keys: [URLResourceKey] = [.isRegularFileKey]
    guard let walk = FileManager.default.enumerator(at: start, includingPropertiesForKeys: keys) else { return [] }
    var paths: [String] = []
    for case let url as URL in walk {
      let path = String(url.path.dropFirst(root.path.count + 1))
      if [".git", ".build"].contains(path) { walk.skipDescendants() }
      if try url.resourceValues(forKeys: Set(keys)).isRegularFile == true { paths.append(path) }
    }
    return paths.sorted()
  }
}
