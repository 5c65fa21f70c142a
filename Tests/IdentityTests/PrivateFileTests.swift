import Foundation
import Testing

@testable import Identity

@Suite struct PrivateFileTests {
  @Test("a file is written with mode 0600, whatever the umask and whatever a crash left behind")
  func permissions() throws {
    try withTemporaryDirectory { directory in
      let path = directory.file("secret")
      try plainFile(path + ".new", Data("torn".utf8))
      try setMode(0o666, of: path + ".new")
      try PrivateFile.create(path, [1, 2, 3])
      #expect(try mode(of: path) == 0o600)
      #expect(try PrivateFile.content(of: path) == [1, 2, 3])
      try PrivateFile.replace(path, [4])
      #expect(try mode(of: path) == 0o600)
      #expect(try PrivateFile.content(of: path) == [4])
      #expect(!FileManager.default.fileExists(atPath: path + ".new"))
    }
  }

  @Test("a file is never made twice")
  func exclusive() throws {
    try withTemporaryDirectory { directory in
      let path = directory.file("secret")
      try PrivateFile.create(path, [1])
      #expect(throws: FileError.exists(path: path)) { try PrivateFile.create(path, [2]) }
      #expect(try PrivateFile.content(of: path) == [1])
    }
  }

  @Test(
    "any right of others makes a file unreadable, and the message says what to run",
    arguments: [0o601, 0o610, 0o604, 0o620, 0o644, 0o777])
  func looserMode(bits: Int) throws {
    try withTemporaryDirectory { directory in
      let path = directory.file("secret")
      try PrivateFile.create(path, [1])
      try setMode(bits, of: path)
      let error = try #require(throws: FileError.self) { try PrivateFile.content(of: path) }
      #expect(error == .openToOthers(path: path, mode: UInt32(bits), isDirectory: false))
      #expect(error.description.contains("chmod 600 '\(path)'"))
      #expect(error.description.contains(String(bits, radix: 8)))
    }
  }

  @Test("links, directories, missing and oversized files are told apart")
  func kinds() throws {
    try withTemporaryDirectory { directory in
      let (real, link) = (directory.file("real"), directory.file("link"))
      #expect(throws: FileError.missing(path: real)) { try PrivateFile.content(of: real) }
      try PrivateFile.create(real, [UInt8](repeating: 1, count: PrivateFile.byteLimit))
      #expect(try PrivateFile.content(of: real).count == PrivateFile.byteLimit)
      try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: real)
      #expect(throws: FileError.notRegular(path: link)) { try PrivateFile.content(of: link) }
      #expect(throws: FileError.exists(path: link)) { try PrivateFile.create(link, [1]) }
      #expect(throws: FileError.notRegular(path: directory.path)) { try PrivateFile.content(of: directory.path) }
      try overwrite(real, with: [UInt8](repeating: 1, count: PrivateFile.byteLimit + 1))
      #expect(throws: FileError.tooLarge(path: real, limit: PrivateFile.byteLimit)) {
        try PrivateFile.content(of: real)
      }
    }
  }

  @Test("a write that cannot be finished leaves the old content")
  func unfinished() throws {
    try withTemporaryDirectory { directory in
      let path = directory.file("state")
      try PrivateFile.create(path, [1])
      // A directory in the temporary file's place cannot be unlinked, so it cannot be made.
      try FileManager.default.createDirectory(atPath: path + ".new", withIntermediateDirectories: false)
      #expect(throws: FileError.failed(operation: "create", path: path + ".new", code: EEXIST)) {
        try PrivateFile.replace(path, [2])
      }
      #expect(try PrivateFile.content(of: path) == [1])
    }
  }
}

@Suite struct DataDirectoryTests {
  @Test("missing directories are made, closed to others")
  func made() throws {
    try withTemporaryDirectory { parent in
      let path = parent.file("a/b/c")
      let directory = try DataDirectory(preparing: path)
      #expect(try mode(of: path) == 0o700)
      #expect(try DataDirectory(existing: path) == directory)
    }
  }

  @Test("an open directory with a few plain files is closed to others before keys go in")
  func tightened() throws {
    try withTemporaryDirectory { directory in
      try plainFile(directory.file("seamesh.json"), Data("{}".utf8))
      try setMode(0o755, of: directory.path)
      #expect(throws: FileError.openToOthers(path: directory.path, mode: 0o755, isDirectory: true)) {
        try DataDirectory(existing: directory.path)
      }
      _ = try DataDirectory(preparing: directory.path)
      #expect(try mode(of: directory.path) == 0o700)
    }
  }

  @Test("somebody's home is left alone: directories inside, many files, or the sticky bit")
  func shared() throws {
    try withTemporaryDirectory { directory in
      for (name, bits) in [("home", 0o755), ("crowd", 0o755), ("tmp", 0o1777)] {
        try FileManager.default.createDirectory(
          atPath: directory.file(name), withIntermediateDirectories: false, attributes: [.posixPermissions: bits])
        try setMode(bits, of: directory.file(name))
      }
      try FileManager.default.createDirectory(
        atPath: directory.file("home/Documents"), withIntermediateDirectories: false)
      for number in 0..<17 {
        try plainFile(directory.file("crowd/\(number)"), Data())
      }
      for name in ["home", "crowd", "tmp"] {
        let before = try mode(of: directory.file(name))
        #expect(throws: FileError.sharedDirectory(path: directory.file(name))) {
          try DataDirectory(preparing: directory.file(name))
        }
        #expect(try mode(of: directory.file(name)) == before)
      }
    }
  }

  @Test("a file in the place of the directory is refused")
  func file() throws {
    try withTemporaryDirectory { directory in
      let path = directory.file("plain")
      try PrivateFile.create(path, [])
      #expect(throws: FileError.self) { try DataDirectory(preparing: path) }
      #expect(throws: FileError.self) { try DataDirectory(existing: path) }
      #expect(throws: FileError.missing(path: directory.file("none"))) {
        try DataDirectory(existing: directory.file("none"))
      }
    }
  }
}
