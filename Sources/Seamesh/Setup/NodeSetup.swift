import Glibc
import Identity
import Replication
import Storage
import Wire

/// Turning an empty directory into a node's.
package enum NodeSetup {
  /// What a person is told after a fleet was made.
  package struct Founded: Sendable {
    package let fleet: FleetID
    package let device: DeviceID
    package let rootKeyPath: String
  }

  package static func isSetUp(_ path: String) -> Bool { NodeFiles.isSetUp(path) }

  /// Keys, a new fleet, and this device as its first admin.
  package static func found(
    _ path: String, fleetName: Text, user: Text, label: Text, profile: ValueMap
  ) throws(NodeError) -> Founded {
    do {
      let (directory, lock) = try claim(path)
      let founding = try FleetFounding.make(fleetName: fleetName, user: user, label: label, profile: profile)
      try KeyFile.device.create(founding.deviceKey, in: directory)
      try KeyFile.fleetRoot.create(founding.rootKey, in: directory)
      try founding.admissionSecret.create(in: directory, fleet: founding.fleet)
      let files = NodeFiles(directory: directory, fleet: founding.fleet, deviceKey: founding.deviceKey)
      try store(founding.statements, files, lock)
      try files.finish()
      return Founded(
        fleet: founding.fleet, device: files.device, rootKeyPath: KeyFile.fleetRoot.path(in: directory))
    } catch {
      throw NodeError(any: error)
    }
  }

  /// What a join brought home.
  static func enter(
    _ directory: DataDirectory, _ lock: DirectoryLock, fleet: FleetID, deviceKey: SigningKey,
    secret: AdmissionSecret, statements: [Statement]
  ) throws {
    try secret.create(in: directory, fleet: fleet)
    let files = NodeFiles(directory: directory, fleet: fleet, deviceKey: deviceKey)
    try store(statements, files, lock)
    try files.finish()
  }

  /// The directory, prepared and locked, and cleared of what an interrupted earlier attempt left.
  static func claim(_ path: String) throws -> (DataDirectory, DirectoryLock) {
    let directory = try DataDirectory(preparing: path)
    let lock = try DirectoryLock(directory: path)
    guard !NodeFiles.isSetUp(path) else {
      throw NodeError(.unprocessable, "\(path) is a node's directory already; give another one with --data")
    }
    // Nothing was ever acknowledged under these: the fleet file, which makes the directory a node's, is written last.
    for name in KeyFile.allCases.map(\.rawValue) { unlink(directory.file(name)) }
    for suffix in ["", "-wal", "-shm"] { unlink(directory.file(Store.fileName + suffix)) }
    return (directory, lock)
  }

  private static func store(_ statements: [Statement], _ files: NodeFiles, _ lock: DirectoryLock) throws {
    let store = try Store.open(
      directory: files.directory.path, fleet: files.fleet, device: files.device, lock: lock)
    try store.write(.full) { transaction in
      for statement in statements { try transaction.addStatement(id: statement.id, encoded: statement.encoded) }
    }
  }
}
