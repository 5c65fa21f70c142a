import Glibc
import Identity
import Replication
import Storage

/// A directory in which a set-up may begin, locked for it. What an earlier set-up made there and did not finish is set
/// aside under the date at which it began, never deleted: its key may be a member's already.
struct SetupClaim {
  let directory: DataDirectory
  let lock: DirectoryLock
  private let contents: DirectoryContents

  init(_ path: String) throws {
    directory = try DataDirectory(preparing: path)
    // Before the lock: on a running node's directory its owner would else be told to stop it, and be refused all the same.
    if let refusal = DirectoryContents(path).setupRefusal { throw refusal }
    lock = try DirectoryLock(directory: path)
    contents = DirectoryContents(path)
    if let refusal = contents.setupRefusal { throw refusal }
  }

  private var earlier: SetupMarker? {
    if case .unfinished(let marker?) = contents.standing { marker } else { nil }
  }

  /// The key that an earlier join to this fleet made: whoever admitted it then need not admit another.
  func key(forJoining fleet: FleetID) -> SigningKey? {
    guard earlier?.purpose == .join, earlier?.fleet == fleet else { return nil }
    return try? KeyFile.device.loadKey(in: directory)
  }

  /// Leaves a directory with a marker and the device's key, and nothing else of a node. Each step may be the last: before
  /// the new marker the old one still says whose the files are.
  func begin(_ purpose: SetupMarker.Purpose, fleet: FleetID, key: SigningKey) throws -> DataDirectory {
    let isKeyThere = contents.present.contains(.deviceKey) && earlier?.device == DeviceID(key.publicKey)
    if let earlier { try setAside(earlier, keepsKey: isKeyThere) }
    try SetupMarker(purpose, fleet: fleet, device: DeviceID(key.publicKey), begun: WallClock.stamp).save(to: directory)
    if !isKeyThere { try KeyFile.device.create(key, in: directory) }
    return directory
  }

  /// Where the files of the earlier set-up are once another has begun; nil where it had made none.
  var aside: String? {
    guard let path = earlier.map(asidePath), access(path, F_OK) == 0 else { return nil }
    return path
  }

  private func asidePath(_ marker: SetupMarker) -> String { directory.file("setup-aside-\(marker.begun)") }

  /// Into one directory, whose name follows from the marker: an attempt that is cut off is gone on with. The key goes last,
  /// since it shows the others to be that set-up's.
  private func setAside(_ marker: SetupMarker, keepsKey: Bool) throws {
    let others = contents.present.subtracting([.deviceKey]).map(\.rawValue).sorted()
    let key = contents.present.contains(.deviceKey) && !keepsKey ? [DirectoryContents.Item.deviceKey.rawValue] : []
    guard !(others + key).isEmpty else { return }
    let aside = asidePath(marker)
    guard mkdir(aside, 0o700) == 0 || errno == EEXIST else { throw SetupClaim.failure("make", aside) }
    for name in others + key {
      let target = "\(aside)/\(name)"
      guard access(target, F_OK) != 0 else { throw FileError.exists(path: target) }
      guard rename(directory.file(name), target) == 0 else {
        throw SetupClaim.failure("set aside", directory.file(name))
      }
    }
    try PrivateFile.synchronise(directory: aside)
    try PrivateFile.synchronise(directory: directory.path)
  }

  private static func failure(_ operation: String, _ path: String) -> FileError {
    .failed(operation: operation, path: path, code: errno)
  }
}
