import Foundation
import Identity
import Replication
import Storage
import Testing

@testable import Seamesh

/// What a running node's directory holds at one moment: as a kill at that moment would leave it.
struct NodeImage {
  let files: [String: Data]

  /// Between two turns of the engine, so that no file is seen half written.
  init(of node: Node) throws {
    files = try node.engine.ask { _ in Result { try NodeImage.read(node.files.directory.path) } }.get()
  }

  init(of path: String) throws { files = try NodeImage.read(path) }

  private static func read(_ path: String) throws -> [String: Data] {
    var files: [String: Data] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: path) where name != "lock" {
      var isDirectory: ObjCBool = false
      let file = "\(path)/\(name)"
      guard FileManager.default.fileExists(atPath: file, isDirectory: &isDirectory), !isDirectory.boolValue else {
        continue
      }
      files[name] = try Data(contentsOf: URL(fileURLWithPath: file))
    }
    return files
  }

  /// Writes the files whose names are given, all where none are. The sidecar then names the inode of the new database, as
  /// the old one's did: whoever looks at it finds the same file.
  func write(to path: String, names: [String]? = nil, namesInode: Bool = false) throws {
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    for (name, content) in files where names?.contains(name) ?? true {
      try #require(
        FileManager.default.createFile(
          atPath: "\(path)/\(name)", contents: content, attributes: [.posixPermissions: 0o600]))
    }
    guard namesInode else { return }
    let directory = try DataDirectory(existing: path)
    guard case .present(var sidecar) = try ReplicaSidecar.load(from: directory) else {
      Issue.record("no sidecar that reads")
      return
    }
    sidecar.host = try HostFacts.current(database: directory.file(Store.fileName))
    try sidecar.save(to: directory)
  }
}

func content(_ path: String) -> Data? { FileManager.default.contents(atPath: path) }

func isThere(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

func remove(_ path: String) throws { try FileManager.default.removeItem(atPath: path) }
