import Replication

// What narrowings, raises and rooms list.
extension CBORReader {
  /// A text of at most ``StatementCodec/textByteLimit`` bytes.
  package mutating func readName() throws(CBORError) -> Text {
    let start = offset
    let range = try readTextRange()
    guard range.count <= StatementCodec.textByteLimit else { throw CBORError(.tooLong, at: start) }
    return text(at: range)
  }

  /// Ends, keep patterns and whether more follows, behind what stood before them.
  mutating func readListing(_ tips: [Statement.ScopeTips]) throws(CBORError) -> Statement.Listing {
    let ends = try readEnds()
    var keep: [Text] = []
    for _ in 0..<(try readArrayHeader()) { keep.append(try readName()) }
    return Statement.Listing(ends: ends, tips: tips, keep: keep, more: try readBool())
  }

  /// `[[partition, [[replica, sequence, tip]…]]…]`
  mutating func readEnds() throws(CBORError) -> [Statement.PartitionEnds] {
    var ends: [Statement.PartitionEnds] = []
    for _ in 0..<(try readArrayHeader()) {
      try readArrayHeader(count: 2)
      let partition = try readName()
      var chains: [Statement.ChainEnd] = []
      let count = try readArrayHeader()
      // They are kept: no room beside them. Each takes no less than this, so that a count alone takes nothing.
      chains.reserveCapacity(min(count, remaining / (ReplicaID.byteCount + TipHash.byteCount)))
      for _ in 0..<count {
        try readArrayHeader(count: 3)
        chains.append(Statement.ChainEnd(replica: try readReplica(), position: try readEndPosition()))
      }
      ends.append(Statement.PartitionEnds(partition: partition, chains: chains))
    }
    return ends
  }

  /// `[[scope, [[issuer, sequence, id]…]]…]`
  mutating func readTips() throws(CBORError) -> [Statement.ScopeTips] {
    var scopes: [Statement.ScopeTips] = []
    for _ in 0..<(try readArrayHeader()) {
      try readArrayHeader(count: 2)
      let scope = try readName()
      var tips: [Statement.Tip] = []
      for _ in 0..<(try readArrayHeader()) {
        try readArrayHeader(count: 3)
        tips.append(
          Statement.Tip(issuer: try readPublicKey(), sequence: try readSequence(), id: try readDigest()))
      }
      scopes.append(Statement.ScopeTips(scope: scope, tips: tips))
    }
    return scopes
  }

  mutating func readIDs() throws(CBORError) -> [Digest] {
    var ids: [Digest] = []
    for _ in 0..<(try readArrayHeader()) { ids.append(try readDigest()) }
    return ids
  }

  mutating func readEndPosition() throws(CBORError) -> ChainPosition {
    ChainPosition(sequence: try readSequence(), tip: try readTip())
  }

  /// 0 stands for none.
  mutating func readSequence() throws(CBORError) -> UInt64 {
    let start = offset
    let sequence = try readUnsigned()
    guard sequence < CBOR.ordinalLimit else { throw CBORError(.outOfRange, at: start) }
    return sequence
  }

  /// At least one entry, since a map without any is left out; keys ascend, below the critical ones.
  mutating func readNotes() throws(CBORError) -> StatementNotes {
    let head = offset
    let count = try readMapHeader()
    guard count > 0, count <= StatementNotes.countLimit else { throw CBORError(.wrongLength, at: head) }
    var entries: [StatementNotes.Entry] = []
    for _ in 0..<count {
      let start = offset
      let key = try readUnsigned()
      guard entries.last.map({ $0.key < key }) ?? true else { throw CBORError(.keyOrder, at: start) }
      guard key < StatementNotes.criticalKey else { throw CBORError(.unsupported, at: start) }
      entries.append(StatementNotes.Entry(key: key, content: Array(try readBytes())))
    }
    return StatementNotes(entries)
  }
}
