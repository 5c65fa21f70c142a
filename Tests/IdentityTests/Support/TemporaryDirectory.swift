import Foundation
import Identity
import Testing

/// Hands a fresh private directory to `body` and removes it afterwards.
func withTemporaryDirectory<Result>(_ body: (DataDirectory) throws -> Result) throws -> Result {
  let path = NSTemporaryDirectory() + "/seamesh-identity-" + UUID().uuidString
  let directory = try DataDirectory(preparing: path)
  defer { try? FileManager.default.removeItem(atPath: path) }
  return try body(directory)
}

func mode(of path: String) throws -> Int {
  let attributes = try FileManager.default.attributesOfItem(atPath: path)
  return try #require(attributes[.posixPermissions] as? Int)
}

func setMode(_ mode: Int, of path: String) throws {
  try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
}

func content(of path: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: path))) }

/// Writes over a file in place, keeping its permissions.
func overwrite(_ path: String, with content: [UInt8]) throws {
  let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
  try handle.truncate(atOffset: 0)
  try handle.write(contentsOf: Data(content))
  try handle.close()
}

/// A file with the permissions that the umask leaves, as other programs make them.
func plainFile(_ path: String, _ content: Data) throws {
  try #require(FileManager.default.createFile(atPath: path, contents: content))
}
