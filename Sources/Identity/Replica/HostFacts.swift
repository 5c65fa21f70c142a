import Replication

#if os(Linux)
  import CLinux
#endif
#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// What shows that a database was copied: to another machine, or to another file of the same one.
///
/// Neither the boot nor the number of the file system's device is part of it: both may change at every start, and a new
/// replica each time would leave every vector of the fleet with thousands of entries.
package struct HostFacts: Hashable, Sendable {
  /// Hash of the machine id, which is not to be spread itself (machine-id(5)). Nil where the machine has none.
  package let machine: Digest?
  /// 0 where the file system gives its files other numbers each time that it is mounted.
  package let databaseInode: UInt64

  package init(machine: Digest?, databaseInode: UInt64) {
    (self.machine, self.databaseInode) = (machine, databaseInode)
  }

  /// The hash in hexadecimal, or `none`.
  package var machineText: Text { Text(machine?.text ?? "none") }

  /// Looks at the database file, which must be there, and at this machine.
  package static func current(
    database path: String, machineIDPaths: [String] = HostFacts.machineIDPaths,
    fileSystem: (String) -> UInt64? = { HostFacts.fileSystem(of: $0) }
  ) throws(FileError) -> HostFacts {
    var information = stat()
    guard stat(path, &information) == 0 else { throw .last("stat", path) }
    let keepsNumbers = fileSystem(path).map { !passingNumbers.contains($0) } ?? true
    return HostFacts(
      machine: machineIDPaths.lazy.compactMap(machineHash).first,
      databaseInode: keepsNumbers ? UInt64(information.st_ino) : 0)
  }

  /// The kind of file system that holds a file, as statfs(2) numbers them; nil where that is not known.
  package static func fileSystem(of path: String) -> UInt64? {
    #if os(Linux)
      let kind = seamesh_file_system(path)
      return kind == 0 ? nil : UInt64(kind)
    #else
      return nil
    #endif
  }

  /// FAT, exFAT and what user programs and other machines serve make up numbers as files are met: a new replica at each start
  /// would be worse than a copy on the same stick that is noticed by nothing else. An overlay keeps the numbers of files that
  /// were written.
  static let passingNumbers: Set<UInt64> = [0x4d44, 0x2011_bab0, 0x6573_5546, 0xff53_4d42, 0xfe53_4d42, 0x0102_1997]

  package static let machineIDPaths = ["/etc/machine-id", "/var/lib/dbus/machine-id"]
  private static let machineIDByteLimit = 256

  private static func machineHash(path: String) -> Digest? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var buffer = [UInt8](repeating: 0, count: machineIDByteLimit)
    let count = read(descriptor, &buffer, buffer.count)
    guard count > 0 else { return nil }
    let id = buffer.prefix(count).prefix { $0 > 0x20 }
    // systemd writes "uninitialized" during the first boot of an image.
    guard !id.isEmpty, !id.elementsEqual("uninitialized".utf8) else { return nil }
    return HMAC.sha256(key: Array(id), Array("seamesh replica sidecar".utf8))
  }
}
