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
    message(.hello, items: 10)
    unsigned(hello.version)
    unsigned(hello.features)
    digest(hello.fleetProof)
    uuid(hello.instance)
    int(hello.wallMilliseconds)
    unsigned(hello.listenPort)
    tip(TipHash(high: hello.authority.high, low: hello.authority.low))
    tip(TipHash(high: hello.interest.high, low: hello.interest.low))
    signature(hello.signature)
    extensions(hello.extensions)
  }

  mutating func interest(_ interest: Interest) {
    arrayHeader(interest.partitions.count)
    for id in interest.partitions { digest(id.digest) }
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
