import Replication

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
  package let databaseInode: UInt64

  package init(machine: Digest?, databaseInode: UInt64) {
    (self.machine, self.databaseInode) = (machine, databaseInode)
  }

  /// The hash in hexadecimal, or `none`.
  package var machineText: Text { Text(machine?.text ?? "none") }

  /// Looks at the database file, which must be there, and at this machine.
  package static func current(
    database path: String, machineIDPaths: [String] = HostFacts.machineIDPaths
  ) throws(FileError) -> HostFacts {
    var information = stat()
    guard stat(path, &information) == 0 else { throw .last("stat", path) }
    return HostFacts(
      machine: machineIDPaths.lazy.compactMap(machineHash).first, databaseInode: UInt64(information.st_ino))
  }

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
