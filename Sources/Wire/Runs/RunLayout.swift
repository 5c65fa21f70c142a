import Replication

/// Numbers of options in runs and changes. What has its usual value is left out, so that each run has one form.
enum RunOption {
  static let grant: UInt64 = 1
  static let keyEpoch: UInt64 = 2
  static let extensions: UInt64 = 3
}

enum ChangeOption {
  static let wallSource: UInt64 = 1
  static let wallUncertainty: UInt64 = 2
  static let codec: UInt64 = 3
  static let flags: UInt64 = 4
  static let schemaVersion: UInt64 = 5
  static let onBehalfOf: UInt64 = 6
  static let group: UInt64 = 7
  static let retires: UInt64 = 8
  static let origin: UInt64 = 9
  static let extensions: UInt64 = 10
  static let keyHashes: UInt64 = 11
}

extension RunCodec {
  /// Bytes of a whole run, so that any run fits a frame. A run full of plain changes takes a fifth of it; authors of
  /// changes with long options close their runs earlier.
  package static let byteLimit = 256 * 1024
  /// Bytes of ``ChangeHeader/onBehalfOf``, a user's id.
  package static let userByteLimit = 255
  /// Bytes of ``ChangeHeader/retires``.
  package static let retiresByteLimit = 4096
}

extension RunCodec {
  /// Whether this version cannot tell what a change's payload says: the change is held, and its key hashes are given
  /// instead of computed. A critical extension of the run is one of each of its changes.
  static func isOpaque(
    codec: PayloadCodec, extensions: [ChangeExtension], runExtensions: [ChangeExtension]
  ) -> Bool {
    codec != .plain || extensions.contains { $0.isCritical } || runExtensions.contains { $0.isCritical }
  }
}

extension ChangeHeader {
  /// Whether the payload travels by itself, named by its hash.
  package var isApart: Bool { payloadByteCount > UInt32(Run.inlinePayloadByteLimit) }
}
