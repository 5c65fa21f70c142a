import Glibc

/// Where the Unix socket of a data directory stands.
///
/// The kernel takes 107 bytes. A longer path is served from the runtime directory, and `api.sock` in the data directory
/// is then a symbolic link to it: whoever knows the data directory finds the socket either way.
package struct UnixSocketPath: Sendable, Equatable {
  package static let fileName = "api.sock"
  package static let byteLimit = 107

  /// In the data directory: the socket itself, or the link.
  let name: String
  /// What is bound.
  package let path: String
  package var isElsewhere: Bool { name != path }

  init(directory: String, runtimeDirectory: String?) throws(LocalServerError) {
    name = directory + "/" + UnixSocketPath.fileName
    if name.utf8.count <= UnixSocketPath.byteLimit {
      path = name
    } else {
      let runtime = if let runtimeDirectory { runtimeDirectory } else { try UnixSocketPath.makeRuntimeDirectory() }
      path = "\(runtime)/\(UnixSocketPath.fingerprint(of: directory)).sock"
    }
  }

  /// What a client connects to, the link followed.
  package static func resolve(directory: String) -> String {
    let name = directory + "/" + fileName
    var target = [CChar](repeating: 0, count: byteLimit + 1)
    let count = readlink(name, &target, byteLimit)
    return count > 0 ? String(decoding: target.prefix(count).map(UInt8.init(bitPattern:)), as: UTF8.self) : name
  }

  /// Puts the link in place, or removes one that is no longer needed.
  func link() throws(LocalServerError) {
    guard isElsewhere else { return }
    unlink(name)
    guard symlink(path, name) == 0 else { throw .system("cannot link \(name)", errno) }
  }

  func remove() {
    unlink(path)
    if isElsewhere { unlink(name) }
  }

  /// The session's runtime directory, else a private one under /tmp.
  private static func makeRuntimeDirectory() throws(LocalServerError) -> String {
    if let base = getenv("XDG_RUNTIME_DIR").map({ String(cString: $0) }), base.hasPrefix("/"), isPrivate(base) {
      return base
    }
    let path = "/tmp/seamesh-\(geteuid())"
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw .system("cannot make \(path)", errno) }
    // Someone else may have made it first, to read what goes over the socket.
    guard isPrivate(path) else { throw .system("\(path) is not a private directory of this user", EPERM) }
    return path
  }

  private static func isPrivate(_ path: String) -> Bool {
    var facts = stat()
    return lstat(path, &facts) == 0 && facts.st_mode & S_IFMT == S_IFDIR && facts.st_uid == geteuid()
      && facts.st_mode & 0o077 == 0
  }

  /// FNV-1a: tells directories apart, guards nothing.
  private static func fingerprint(of directory: String) -> String {
    let hash = directory.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    return "seamesh-" + String(hash, radix: 16)
  }
}
