import Replication

/// Numbers of options of a change. What has its usual value is left out, so that each run has one form.
enum ChangeOption {
  static let codec: UInt64 = 1
  static let extensions: UInt64 = 2
  static let keyHashes: UInt64 = 3
}

extension RunCodec {
  /// Items of a run: replica, first, hash before, context digest, changes, signature.
  static let fieldCount = 6

  /// Bytes of a whole run, so that any run fits a frame. A run full of plain changes takes a fifth of it; authors of
  /// changes with long extensions close their runs earlier.
  package static let byteLimit = 256 * 1024
}

/// How much of a run's payloads its bytes must have.
package enum RunForm: Sendable {
  /// Every change with its payload, or with the hash by which one above 16 KiB travels apart: what sessions send and
  /// logs hold.
  case whole
  /// Any change may stand as its header alone (`Docs/PROTOCOL.md`, "Header-only changes").
  case withHeadersOnly

  /// The bit of ``Hello/features`` by which a node says that it takes runs in the form ``withHeadersOnly``. Reserved: no
  /// message carries them yet.
  package static let headersOnlyFeature: UInt64 = 1 << 0

  /// Key hashes, which a plain payload needs not name, may take what the payloads leave.
  package var byteLimit: Int {
    switch self {
    case .whole: RunCodec.byteLimit
    case .withHeadersOnly: 2 * RunCodec.byteLimit
    }
  }
}

extension ChangeHeader {
  /// Whether the change names its key hashes instead of leaving them to the payload, which the first builds cannot read.
  /// This never follows what a later build learns to read: the bytes of a change are the same for all.
  var isOpaque: Bool {
    codec != .plain || extensions.contains { $0.isCritical && $0.type != ChangeExtension.Registered.origin }
  }

  /// Whether the payload travels by itself, named by its hash.
  package var isApart: Bool { payloadByteCount > UInt32(Run.inlinePayloadByteLimit) }
}
