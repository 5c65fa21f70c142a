/// The hash function of the protocol (SHA-256), handed in: the core brings no cryptography of its own.
package typealias HashFunction = @Sendable (UnsafeRawBufferPointer) -> Digest

extension Digest {
  /// The hash of an array's bytes.
  package static func of(_ bytes: [UInt8], _ hash: HashFunction) -> Digest { bytes.withUnsafeBytes(hash) }
}

/// One trust domain. The id is the hash of the fleet root public key.
package struct FleetID: Hashable, Comparable, Sendable {
  package let digest: Digest
  package init(_ digest: Digest) { self.digest = digest }
  package static func < (a: FleetID, b: FleetID) -> Bool { a.digest < b.digest }
}

/// One Ed25519 key pair. The id is the hash of its public key.
package struct DeviceID: Hashable, Comparable, Sendable {
  package let digest: Digest
  package init(_ digest: Digest) { self.digest = digest }
  package static func < (a: DeviceID, b: DeviceID) -> Bool { a.digest < b.digest }
}

/// A named unit of data that syncs as a whole. The id is H(domain, fleet, name).
package struct PartitionID: Hashable, Comparable, Sendable {
  package let digest: Digest
  package init(_ digest: Digest) { self.digest = digest }
  package static func < (a: PartitionID, b: PartitionID) -> Bool { a.digest < b.digest }
}

/// The raw 32 bytes of an Ed25519 public key.
package struct PublicKey: Hashable, Comparable, Sendable {
  package let raw: Digest
  package init(_ raw: Digest) { self.raw = raw }
  package init?(_ bytes: some Collection<UInt8>) {
    guard let raw = Digest(bytes) else { return nil }
    self.raw = raw
  }
  package var bytes: [UInt8] { raw.bytes }
  package static func < (a: PublicKey, b: PublicKey) -> Bool { a.raw < b.raw }
}

/// The raw 64 bytes of an Ed25519 signature.
package struct Signature: Hashable, Sendable {
  package let first: Digest
  package let second: Digest

  package init?(_ bytes: some RandomAccessCollection<UInt8>) {
    guard bytes.count == 64, let first = Digest(bytes.prefix(32)), let second = Digest(bytes.suffix(32)) else {
      return nil
    }
    (self.first, self.second) = (first, second)
  }

  package init(first: Digest, second: Digest) { (self.first, self.second) = (first, second) }

  package static let byteCount = 64
  package var bytes: [UInt8] { first.bytes + second.bytes }
}

/// A name of one change for ever: the n-th write of one replica in one partition (the partition is known from the place).
package struct Dot: Hashable, Comparable, Sendable {
  package let replica: ReplicaID
  package let sequence: UInt64

  package init(replica: ReplicaID, sequence: UInt64) { (self.replica, self.sequence) = (replica, sequence) }
  package static func < (a: Dot, b: Dot) -> Bool { (a.replica, a.sequence) < (b.replica, b.sequence) }
}

/// Fixed 16-byte ASCII prefixes of everything that is hashed or signed, so that no two kinds of input share bytes.
package enum DomainTag: String, CaseIterable, Sendable {
  case fleet = "seamesh/1 fleet"
  case device = "seamesh/1 device"
  case replica = "seamesh/1 replic"
  case partition = "seamesh/1 partit"
  case key = "seamesh/1 key"
  case chain = "seamesh/1 chain"
  case context = "seamesh/1 contex"
  case change = "seamesh/1 change"
  case run = "seamesh/1 run"
  case statement = "seamesh/1 statem"
  case hello = "seamesh/1 hello"
  case join = "seamesh/1 join"
  case summary = "seamesh/1 summar"
  case interest = "seamesh/1 intere"
  case vector = "seamesh/1 vector"
  case forks = "seamesh/1 forks"
  case above = "seamesh/1 above"
  case room = "seamesh/1 room"
  case discovery = "seamesh/1 discov"
  case proof = "seamesh/1 proof"
  case mark = "seamesh/1 mark"
  case authority = "seamesh/1 author"
  case pieces = "seamesh/1 pieces"
  case etag = "seamesh/1 etag"
  case holdings = "seamesh/1 holdin"
  case heldSum = "seamesh/1 heldsu"

  package static let byteCount = 16

  /// The tag, filled up with zero bytes.
  package func append(to out: inout [UInt8]) {
    out.append(contentsOf: rawValue.utf8)
    out.append(contentsOf: repeatElement(0, count: DomainTag.byteCount - rawValue.utf8.count))
  }

  package var bytes: [UInt8] {
    var out: [UInt8] = []
    append(to: &out)
    return out
  }
}
