/// One atomic write by one replica in one partition, without its payload's bytes: everything the chain hash covers.
///
/// The layout of the hash input never changes (`Docs/PROTOCOL.md`); growth is in codecs and ``extensions``.
package struct ChangeHeader: Hashable, Sendable {
  package var sequence: UInt64
  package var timestamp: HybridTimestamp
  package var wall: WallTime
  package var codec: PayloadCodec
  package var payloadByteCount: UInt32
  package var payloadHash: Digest
  /// One per document of the payload, in payload order.
  package var keyHashes: [KeyHash]
  /// Ascending by type.
  package var extensions: [ChangeExtension]

  package init(
    sequence: UInt64, timestamp: HybridTimestamp, wall: WallTime, codec: PayloadCodec = .plain,
    payloadByteCount: UInt32, payloadHash: Digest, keyHashes: [KeyHash], extensions: [ChangeExtension] = []
  ) {
    (self.sequence, self.timestamp, self.wall, self.codec) = (sequence, timestamp, wall, codec)
    (self.payloadByteCount, self.payloadHash) = (payloadByteCount, payloadHash)
    (self.keyHashes, self.extensions) = (keyHashes, extensions)
  }

  /// The first original of a re-issued change (rule C22).
  package var origin: ChangeOrigin? {
    extensions.first { $0.type == ChangeExtension.Registered.origin }.flatMap { ChangeOrigin($0.content) }
  }

  /// A change that carries what this version does not understand, and says that it matters, is held (rule C4).
  package var hasUnknownCriticalExtension: Bool { extensions.contains { $0.isUnknownAndCritical } }

  /// The extensions of a change that writes this one again: what was told of it stays told.
  package func extensions(ofReissue origin: ChangeOrigin) -> [ChangeExtension] {
    extensions.filter { !$0.isCritical } + [ChangeExtension(origin)]
  }
}

/// What the author's wall clock showed, for people; merge does not read it.
package struct WallTime: Hashable, Sendable {
  /// Milliseconds since 1970-01-01T00:00:00Z.
  package var milliseconds: Int64

  package init(milliseconds: Int64) { self.milliseconds = milliseconds }
}

/// How payload bytes are written. Open: an unknown codec holds the change as an unknown critical extension does.
package struct PayloadCodec: Hashable, Sendable {
  package let rawValue: UInt8
  package init(rawValue: UInt8) { self.rawValue = rawValue }

  package static let plain = PayloadCodec(rawValue: 0)
  /// Reserved: one zstd frame of a plain payload.
  package static let zstd = PayloadCodec(rawValue: 1)
  /// Reserved: a payload under a key that not every relay has.
  package static let sealed = PayloadCodec(rawValue: 2)
}

/// One chain's constant part of every hash input.
package struct ChainIdentity: Hashable, Sendable {
  package let fleet: FleetID
  package let partition: PartitionID
  package let replica: ReplicaID

  package init(fleet: FleetID, partition: PartitionID, replica: ReplicaID) {
    (self.fleet, self.partition, self.replica) = (fleet, partition, replica)
  }

  /// `hash(0) = H(domain, fleet, partition, replica)`.
  package func genesis(_ hash: HashFunction) -> Digest {
    var input = DomainTag.chain.bytes
    append(to: &input)
    return Digest.of(input, hash)
  }

  func append(to out: inout [UInt8]) {
    fleet.digest.append(to: &out)
    partition.digest.append(to: &out)
    replica.append(to: &out)
  }
}

/// The hashes of a chain's changes, one after another: `hash(n)` covers the chain, everything before it, the context of its
/// run and every field of its header. In one buffer, since a first sync computes hundreds of thousands.
package struct ChainHasher {
  private var input: [UInt8]
  /// Of what is the same for every change.
  private let prefixByteCount: Int
  private let contextDigest: Digest
  /// Of the last change.
  package private(set) var last: Digest

  /// Goes on behind the change with the hash `previous`, within the run of that context.
  package init(chain: ChainIdentity, after previous: Digest, contextDigest: Digest) {
    (self.contextDigest, last) = (contextDigest, previous)
    input = DomainTag.change.bytes
    input.reserveCapacity(512)
    chain.append(to: &input)
    prefixByteCount = input.count
  }

  package mutating func append(_ header: ChangeHeader, _ hash: HashFunction) -> Digest {
    input.removeLast(input.count - prefixByteCount)
    appendBigEndian(header.sequence, to: &input)
    last.append(to: &input)
    contextDigest.append(to: &input)
    header.append(to: &input)
    last = Digest.of(input, hash)
    return last
  }
}

extension ChangeHeader {
  package func chainHash(
    chain: ChainIdentity, previous: Digest, contextDigest: Digest, _ hash: HashFunction
  ) -> Digest {
    var hasher = ChainHasher(chain: chain, after: previous, contextDigest: contextDigest)
    return hasher.append(self, hash)
  }

  /// Every field but the sequence.
  fileprivate func append(to input: inout [UInt8]) {
    appendBigEndian(timestamp.rawValue, to: &input)
    appendBigEndian(UInt64(bitPattern: wall.milliseconds), to: &input)
    input.append(codec.rawValue)
    appendBigEndian(payloadByteCount, to: &input)
    payloadHash.append(to: &input)
    appendBigEndian(UInt16(truncatingIfNeeded: extensions.count), to: &input)
    for item in extensions {
      appendBigEndian(item.type, to: &input)
      appendCounted(item.content, to: &input)
    }
    appendBigEndian(UInt16(truncatingIfNeeded: keyHashes.count), to: &input)
    for key in keyHashes { key.append(to: &input) }
  }
}

/// Two bytes of length, then the bytes. Callers hold content below 64 KiB.
func appendCounted(_ content: [UInt8], to out: inout [UInt8]) {
  appendBigEndian(UInt16(truncatingIfNeeded: content.count), to: &out)
  out.append(contentsOf: content)
}

extension DocumentKey {
  /// First 16 bytes of `H(domain, partition id, collection length 2, collection, canonical id)`.
  package func hash(in partition: PartitionID, _ hash: HashFunction) -> KeyHash {
    var input = DomainTag.key.bytes
    input.reserveCapacity(DomainTag.byteCount + 34 + collection.utf8.count + id.count)
    partition.digest.append(to: &input)
    appendBigEndian(UInt16(truncatingIfNeeded: collection.utf8.count), to: &input)
    input.append(contentsOf: collection.utf8)
    input.append(contentsOf: id)
    let digest = Digest.of(input, hash)
    return KeyHash(high: digest.words.0, low: digest.words.1)
  }
}
