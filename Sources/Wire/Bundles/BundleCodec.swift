import Replication

/// The form of a bundle (`Docs/PROTOCOL.md`, "Bundles"). Nothing writes or takes in bundles yet.
package enum BundleCodec {
  package static let version: UInt64 = 1
  /// Bytes of one bundle. Any run fits with its context and payload; more makes further bundles.
  package static let byteLimit = 8 * 1024 * 1024
  package static let statementLimit = 65_536
  static let fieldCount = 4

  package static func encode(_ bundle: Bundle) -> [UInt8] {
    var writer = CBORWriter(reserving: 4096)
    writer.arrayHeader(fieldCount)
    writer.unsigned(version)
    writer.digest(bundle.fleet.digest)
    writer.arrayHeader(bundle.statements.count)
    for statement in bundle.statements { writer.byteString(statement) }
    writer.arrayHeader(bundle.partitions.count)
    for partition in bundle.partitions { writer.partition(partition) }
    return writer.bytes
  }

  /// Exactly one bundle. What is in it is neither verified nor judged.
  package static func decode(_ bytes: ArraySlice<UInt8>) throws(CBORError) -> Bundle {
    guard bytes.count <= byteLimit else { throw CBORError(.tooLong, at: bytes.startIndex) }
    var reader = CBORReader(bytes)
    let bundle = try reader.readBundle()
    try reader.finish()
    return bundle
  }
}

extension CBORWriter {
  fileprivate mutating func partition(_ partition: Bundle.Partition) {
    arrayHeader(2)
    text(partition.name.text)
    arrayHeader(partition.runs.count)
    for entry in partition.runs {
      arrayHeader(entry.payload == nil ? 2 : 3)
      context(entry.context)
      byteString(entry.encoded)
      if let payload = entry.payload { byteString(payload) }
    }
  }
}

extension CBORReader {
  fileprivate mutating func readBundle() throws(CBORError) -> Bundle {
    try readArrayHeader(count: BundleCodec.fieldCount)
    let start = offset
    guard try readUnsigned() == BundleCodec.version else { throw CBORError(.unsupported, at: start) }
    let fleet = FleetID(try readDigest())
    let statementsStart = offset
    let statementCount = try readArrayHeader()
    guard statementCount <= BundleCodec.statementLimit else { throw CBORError(.tooLong, at: statementsStart) }
    var statements: [ArraySlice<UInt8>] = []
    for _ in 0..<statementCount { statements.append(try readBytes()) }
    var partitions: [Bundle.Partition] = []
    for _ in 0..<(try readArrayHeader()) {
      let start = offset
      let partition = try readBundlePartition()
      if let last = partitions.last, partition.name <= last.name { throw CBORError(.keyOrder, at: start) }
      partitions.append(partition)
    }
    return Bundle(fleet: fleet, statements: statements, partitions: partitions)
  }

  private mutating func readBundlePartition() throws(CBORError) -> Bundle.Partition {
    try readArrayHeader(count: 2)
    let name = try partitionName()
    let start = offset
    var runs: [Bundle.Entry] = []
    for _ in 0..<(try readArrayHeader()) { runs.append(try readBundleEntry()) }
    guard !runs.isEmpty else { throw CBORError(.wrongLength, at: start) }
    return Bundle.Partition(name: name, runs: runs)
  }

  private mutating func readBundleEntry() throws(CBORError) -> Bundle.Entry {
    let start = offset
    let fieldCount = try readArrayHeader()
    guard fieldCount == 2 || fieldCount == 3 else { throw CBORError(.wrongLength, at: start) }
    let (context, encoded) = (try readContext(), try readBytes())
    let isApart = try RunCodec.apartPayload(of: encoded) != nil
    guard isApart == (fieldCount == 3) else { throw CBORError(.wrongLength, at: start) }
    return Bundle.Entry(context: context, encoded: encoded, payload: isApart ? try readBytes() : nil)
  }
}
