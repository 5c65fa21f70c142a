import Replication

extension CBORWriter {
  mutating func message(_ number: MessageCodec.Number, items: Int) {
    arrayHeader(items + 1)
    unsigned(number.rawValue)
  }

  mutating func byteStrings(_ list: [[UInt8]]) {
    arrayHeader(list.count)
    for item in list { byteString(item) }
  }

  mutating func hello(_ hello: Hello) {
    message(.hello, items: 13)
    unsigned(hello.version)
    unsigned(hello.features)
    digest(hello.fleet.digest)
    publicKey(hello.device)
    uuid(hello.instance)
    if let id = hello.replica { replica(id) } else { null() }
    unsigned(hello.ownCommits)
    int(hello.wallMilliseconds)
    unsigned(hello.listenPort)
    digest(hello.authority)
    digest(hello.interest)
    byteStrings(hello.credentials)
    optional(hello.signature)
  }

  private mutating func optional(_ signature: Signature?) {
    if let signature { self.signature(signature) } else { null() }
  }

  mutating func interest(_ interest: Interest) {
    arrayHeader(interest.partitions.count)
    for id in interest.partitions.sorted() { digest(id.digest) }
    arrayHeader(interest.prefixes.count)
    for prefix in interest.prefixes.sorted() { text(prefix) }
  }

  mutating func partitionVector(_ item: PartitionVector) {
    arrayHeader(item.staged.isEmpty ? 3 : 4)
    text(item.name.text)
    vector(item.vector)
    bool(item.hasMore)
    guard !item.staged.isEmpty else { return }
    arrayHeader(item.staged.count)
    for staged in item.staged {
      arrayHeader(2)
      digest(staged.hash)
      unsigned(staged.byteCount)
    }
  }

  mutating func runs(_ batch: RunBatch) {
    message(.runs, items: 4)
    text(batch.name.text)
    unsigned(batch.stream)
    bool(batch.isForkEvidence)
    arrayHeader(batch.entries.count)
    for entry in batch.entries {
      arrayHeader(2)
      context(entry.context)
      byteString(entry.encoded)
    }
  }

  mutating func payloadPiece(_ piece: PayloadPiece) {
    message(.payloadPiece, items: 6)
    text(piece.name.text)
    unsigned(piece.stream)
    digest(piece.hash)
    unsigned(piece.total)
    unsigned(piece.offset)
    byteString(piece.bytes)
  }

  mutating func chainProbe(_ probe: ChainProbe) {
    message(.chainProbe, items: 4)
    text(probe.name.text)
    replica(probe.replica)
    bool(probe.wantsReply)
    arrayHeader(probe.positions.count)
    for position in probe.positions {
      arrayHeader(2)
      unsigned(position.sequence)
      tip(position.tip)
    }
  }
}
