import Replication

/// The key files of a node: one secret each, readable by their owner alone (fault X1).
///
/// Text, so that they can be recognised, printed on paper and typed again: the check line finds a wrong digit.
package enum KeyFile: String, CaseIterable, Sendable {
  case device = "device.key"
  case fleetRoot = "fleet-root.key"

  var title: String {
    switch self {
    case .device: "Seamesh device key, version 1"
    case .fleetRoot: "Seamesh fleet root key, version 1"
    }
  }

  var remarks: [String] {
    switch self {
    case .device:
      [
        "Whoever has this file can act as this device. Never copy it to another device:",
        "each device makes its own.",
      ]
    case .fleetRoot:
      [
        "Whoever has this file rules the fleet: it alone makes admins, rules and grants.",
        "Move it to a USB stick or to paper, keep it in a safe place, and delete it here.",
        "Devices do not need it from day to day.",
      ]
    }
  }

  package func path(in directory: DataDirectory) -> String { directory.file(rawValue) }
}

extension KeyFile {
  /// Refuses where the file is there: a key is never overwritten.
  package func create(_ key: SigningKey, in directory: DataDirectory) throws(FileError) {
    let fields = [("seed", Hex.encode(key.seed.copy())), ("public", Hex.encode(key.publicKey.bytes))]
    try create(fields: fields, in: directory)
  }

  /// Reads a key from any place, such as a USB stick.
  package func loadKey(path: String) throws(FileError) -> SigningKey {
    try load(path: path) { file throws(FieldFile.Invalid) in
      let key = try file.value("seed") { Hex.decode($0).flatMap { SigningKey(seed: $0) } }
      guard try file.value("public") == Hex.encode(key.publicKey.bytes) else { throw .field("public") }
      return key
    }
  }

  package func loadKey(in directory: DataDirectory) throws(FileError) -> SigningKey {
    try loadKey(path: path(in: directory))
  }

  private func create(fields: [(String, String)], in directory: DataDirectory) throws(FileError) {
    let file = FieldFile(title: title, remarks: remarks, fields: fields)
    try PrivateFile.create(path(in: directory), Array(file.text.utf8))
  }

  private func load<Secret>(
    path: String, _ take: (FieldFile) throws(FieldFile.Invalid) -> Secret
  ) throws(FileError) -> Secret {
    let content = try PrivateFile.content(of: path)
    do throws(FieldFile.Invalid) {
      return try take(try FieldFile.parse(content, title: title))
    } catch {
      throw .damaged(path: path, reason: error.reason)
    }
  }
}
