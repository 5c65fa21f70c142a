import Replication

extension CBORReader {
  /// `items` counts what follows the number; a longer array is a later version's, and refused: growth is by features.
  mutating func message(_ kind: MessageCodec.Number, items: Int) throws(CBORError) -> Message {
    switch kind {
    case .hello: return .hello(try hello(items))
    case .joinRequest: return .joinRequest(try joinRequest(items))
    case .joinAccepted: return .joinAccepted(try joinAccepted(items))
    case .joinRefused: return .joinRefused(try joinRefused(items))
    case .credentialRequest:
      try expect(items, 1)
      return .credentialRequest(fleetProof: try readDigest())
    case .credentials:
      try expect(items, 1)
      return .credentials(try statements(limit: Message.credentialLimit))
    case .statementSet: return .statementSet(try statementSet(items))
    case .statements:
      try expect(items, 2)
      let scope = try scope()
      return .statements(try statements(limit: Statement.countLimit), of: scope)
    case .statementsComplete:
      try expect(items, 1)
      return .statementsComplete(of: try scope())
    case .interestRequest:
      try expect(items, 0)
      return .interestRequest
    case .interest:
      try expect(items, 2)
      return .interest(try interest())
    case .interestChange:
      try expect(items, 4)
      return .interestChange(added: try interest(), removed: try interest())
    case .summary:
      return .summary(try summary(items: items))
    case .vectors:
      try expect(items, 1)
      return .vectors(try partitionVectors())
    case .pull:
      return try pull(items)
    case .runs:
      try expect(items, 4)
      return .runs(try runs())
    case .payloadPiece:
      try expect(items, 6)
      return .payloadPiece(try payloadPiece())
    case .have:
      try expect(items, 1)
      return .have(try partitionVector())
    case .chainProbe:
      try expect(items, 4)
      return .chainProbe(try chainProbe())
    case .ping:
      try expect(items, 1)
      return .ping(nonce: try readUnsigned())
    case .pong:
      try expect(items, 1)
      return .pong(nonce: try readUnsigned())
    case .holdings: return .holdings(.records(try holdings(items)))
    case .holdingsQuestion: return .holdings(.question(try holdingsQuestion(items)))
    case .spent: return .spent(try spent(items))
    case .neighbours: return .neighbours(try neighbours(items))
    case .pushChoice: return .pushChoice(try pushChoice(items))
    case .goodbye:
      try expect(items, 1)
      return .goodbye(Goodbye(rawValue: try readUnsigned()) ?? .stopping)
    }
  }

  func expect(_ items: Int, _ count: Int) throws(CBORError) {
    guard items == count else { throw CBORError(.unexpectedType, at: offset) }
  }

  mutating func list<Item>(
    limit: Int, _ read: (inout CBORReader) throws(CBORError) -> Item
  ) throws(CBORError) -> [Item] {
    let start = offset
    let count = try readArrayHeader()
    guard count <= limit else { throw CBORError(.tooLong, at: start) }
    var items: [Item] = []
    items.reserveCapacity(count)
    for _ in 0..<count { items.append(try read(&self)) }
    return items
  }

  private mutating func statements(limit: Int) throws(CBORError) -> [[UInt8]] {
    try list(limit: limit) { reader throws(CBORError) in
      let start = reader.offset
      let bytes = try reader.readBytes()
      guard bytes.count <= StatementCodec.byteLimit else { throw CBORError(.tooLong, at: start) }
      return Array(bytes)
    }
  }

  private mutating func hello(_ items: Int) throws(CBORError) -> Hello {
    try expect(items, 10)
    let (version, features, proof) = (try readUnsigned(), try readUnsigned(), try readDigest())
    let (instance, wall, port) = (try readUUID(), try readInt(), try readUnsigned(UInt16.self))
    var hello = Hello(
      fleetProof: proof, instance: instance, wallMilliseconds: wall, listenPort: port, authority: try readMark(),
      interest: try readMark(), signature: try readSignature())
    (hello.version, hello.features) = (version, features)
    hello.extensions = try readExtensions()
    return hello
  }

  private mutating func readMark() throws(CBORError) -> DigestMark {
    let tip = try readTip()
    return DigestMark(high: tip.high, low: tip.low)
  }

  /// Empty for the fleet.
  mutating func scope() throws(CBORError) -> Text { try shortText() }

  mutating func shortText() throws(CBORError) -> Text {
    let start = offset
    let text = try readText()
    guard text.utf8.count <= PartitionName.byteLimit else { throw CBORError(.tooLong, at: start) }
    return text
  }

  private mutating func interest() throws(CBORError) -> Interest {
    let partitions = try list(limit: Interest.partitionLimit) { reader throws(CBORError) in
      PartitionID(try reader.readDigest())
    }
    let prefixes = try list(limit: Interest.prefixLimit) { reader throws(CBORError) in try reader.shortText() }
    return Interest(partitions: partitions, prefixes: Set(prefixes))
  }

  mutating func partitionName() throws(CBORError) -> PartitionName {
    let start = offset
    guard let name = try? PartitionName(try readText()) else { throw CBORError(.unexpectedType, at: start) }
    return name
  }

  /// All of them together have no more entries than one alone.
  private mutating func partitionVectors() throws(CBORError) -> [PartitionVector] {
    let start = offset
    var room = PartitionVector.entryLimit
    return try list(limit: PartitionVector.entryLimit) { reader throws(CBORError) in
      let item = try reader.partitionVector()
      room -= max(item.vector.count, 1)
      guard room >= 0 else { throw CBORError(.tooLong, at: start) }
      return item
    }
  }

  private mutating func pull(_ items: Int) throws(CBORError) -> Message {
    guard items == 3 else {
      try expect(items, 2)
      return .pull(stream: try readUnsigned(), try partitionVector())
    }
    let number = try readUnsigned()
    let start = offset
    var vector = try partitionVector(removing: true)
    guard !vector.hasMore else { throw CBORError(.outOfRange, at: start) }
    vector.base = try readUnsigned()
    return .pull(stream: number, vector)
  }

  /// - Parameter removing: whether it says how it differs from another one.
  private mutating func partitionVector(removing: Bool = false) throws(CBORError) -> PartitionVector {
    let start = offset
    let items = try readArrayHeader()
    guard items == 3 || items == 4 else { throw CBORError(.unexpectedType, at: start) }
    let (name, vector) = (try partitionName(), try readVector(removing: removing, limit: PartitionVector.entryLimit))
    let hasMore = try readBool()
    guard items == 4 else { return PartitionVector(name: name, vector: vector, hasMore: hasMore) }
    let staged = try list(limit: PartitionVector.stagedLimit) { reader throws(CBORError) in
      try reader.readArrayHeader(count: 2)
      return StagedPayload(hash: try reader.readDigest(), byteCount: try reader.readUnsigned())
    }
    return PartitionVector(name: name, vector: vector, hasMore: hasMore, staged: staged)
  }

  /// Sequences stay below 2^53, so that sums of a few never overflow.
  private mutating func readOrdinalOrZero() throws(CBORError) -> UInt64 {
    let start = offset
    let value = try readUnsigned()
    guard value <= RunSummary.sequenceLimit else { throw CBORError(.tooLong, at: start) }
    return value
  }

  private mutating func runs() throws(CBORError) -> RunBatch {
    let (name, stream, isEvidence) = (try partitionName(), try readUnsigned(), try readBool())
    let entries = try list(limit: RunBatch.entryLimit) { reader throws(CBORError) in
      try reader.readArrayHeader(count: 2)
      return RunBatch.Entry(context: try reader.readContext(), encoded: try reader.readBytes())
    }
    return RunBatch(name: name, stream: stream, entries: entries, isForkEvidence: isEvidence)
  }

  private mutating func payloadPiece() throws(CBORError) -> PayloadPiece {
    let start = offset
    let (name, stream) = (try partitionName(), try readUnsigned())
    let (hash, total, pieceOffset) = (try readDigest(), try readUnsigned(), try readUnsigned())
    let piece = PayloadPiece(
      name: name, stream: stream, hash: hash, total: total, offset: pieceOffset, bytes: try readBytes())
    guard piece.isPossible else { throw CBORError(.tooLong, at: start) }
    return piece
  }

  private mutating func chainProbe() throws(CBORError) -> ChainProbe {
    let (name, replica, wantsReply) = (try partitionName(), try readReplica(), try readBool())
    let positions = try list(limit: ChainProbe.positionLimit) { reader throws(CBORError) in
      try reader.readArrayHeader(count: 2)
      return ChainPosition(sequence: try reader.readOrdinalOrZero(), tip: try reader.readTip())
    }
    return ChainProbe(name: name, replica: replica, positions: positions, wantsReply: wantsReply)
  }
}
