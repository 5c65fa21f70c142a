import Replication
import TestSupport

@testable import Wire

extension SplitMix64 {
  /// A well-formed write of the change `dot`.
  mutating func write(dot: Dot, collection: Text, id: Value) -> DocumentWrite {
    let kind = DocumentWrite.Kind.allCases[below(3)]
    let generation = UInt64(below(1000)) * 2 + (kind == .delete ? 2 : 1)
    let operations = kind == .delete ? [] : operations(dot: dot, count: 1 + below(8))
    return DocumentWrite(collection: collection, id: id, kind: kind, generation: generation, operations: operations)
  }

  mutating func writes(dot: Dot, count: Int) -> [DocumentWrite] {
    (0..<count).map { index in
      let ids: [Value] = [
        .string(Text("id \(index)")), .int(Int64(index)), .uuid(uuid()), .objectID(objectID()),
      ]
      let collection: Text = ["Report", "Photo", "Ré"][below(3)]
      return write(dot: dot, collection: collection, id: ids[below(4)])
    }
  }

  /// Operations at paths of which none is above another.
  mutating func operations(dot: Dot, count: Int) -> [Operation] {
    var used: Set<ArraySlice<UInt8>> = []
    var operations: [Operation] = []
    for index in 0..<count {
      let operation = operation(dot: dot, root: Text("\(text(maximum: 4).string)\(index)"))
      if used.insert(EntryPaths([operation], dot: dot)[0]).inserted { operations.append(operation) }
    }
    return operations
  }

  private mutating func operation(dot: Dot, root: Text) -> Operation {
    var path: [PathSegment] = [.key(root)]
    for _ in 0..<below(3) { path.append(chance(60) ? .key(text()) : .element(element(dot: dot))) }
    switch Operation.Kind.allCases[below(7)] {
    case .set: return Operation(.set, path, value: settable())
    case .remove: return Operation(.remove, path + [.key("x")])
    case .increment: return Operation(.increment, path + [.key("n")], value: .int(int() | 1))
    case .listInsert: return Operation(.listInsert, path, value: settable(), position: bytes(1 + below(12)))
    case .listRemove: return Operation(.listRemove, path + [.element(element(dot: dot))])
    case .setAdd: return Operation(.setAdd, path, value: value())
    case .setRemove: return Operation(.setRemove, path, value: value())
    }
  }

  /// Any value but a map that is not empty.
  private mutating func settable() -> Value {
    let value = value()
    if case .map(let map) = value, !map.isEmpty { return .map(ValueMap()) }
    return value
  }

  private mutating func element(dot: Dot) -> ListElement {
    let owners = [
      dot, Dot(replica: replica(), sequence: 1 + UInt64(below(90))), Dot(replica: dot.replica, sequence: 1),
    ]
    return ListElement(position: bytes(1 + below(9)), dot: owners[below(3)])
  }
}

/// A chain of the tests, with runs that fit one behind the other.
struct TestChain {
  let chain: ChainIdentity
  private(set) var sequence: UInt64 = 0
  private(set) var tip: Digest

  init(_ generator: inout SplitMix64) {
    chain = ChainIdentity(
      fleet: FleetID(generator.digest()), partition: PartitionID(generator.digest()), replica: generator.replica())
    tip = chain.genesis(sha256)
  }

  mutating func run(
    _ headers: [ChangeHeader], payloads: [[UInt8]], context: VersionVector = VersionVector(),
    signature: Signature = zeroSignature
  ) throws -> Run {
    var changes: [Change] = []
    for (header, payload) in zip(headers, payloads) {
      changes.append(try change(header, payload: payload))
    }
    let digest = RunRecord.digest(of: context, sha256)
    var hash = tip
    let hashes = changes.map { change in
      hash = change.header.chainHash(chain: chain, previous: hash, contextDigest: digest, sha256)
      return hash
    }
    let record = RunRecord(
      chain: chain, first: sequence + 1, last: sequence + UInt64(changes.count), hashBefore: tip, context: context,
      contextDigest: digest, hashAtLast: hash, signature: signature)
    (sequence, tip) = (record.last, hash)
    return Run(record: record, changes: changes, hashes: hashes)
  }

  private func change(_ header: ChangeHeader, payload: [UInt8]) throws -> Change {
    guard header.isOpaque else { return try Change.plain(header, payload: payload, chain: chain, sha256).change }
    var header = header
    header.payloadByteCount = UInt32(payload.count)
    header.payloadHash = Digest.of(payload, sha256)
    return Change(header: header, payload: payload[...])
  }

  func dot(_ offset: Int) -> Dot { Dot(replica: chain.replica, sequence: sequence + 1 + UInt64(offset)) }

  /// A header with clocks and nothing unusual.
  func header(_ offset: Int, milliseconds: UInt64, wall: WallTime? = nil) -> ChangeHeader {
    ChangeHeader(
      sequence: dot(offset).sequence, timestamp: HybridTimestamp(milliseconds: milliseconds, counter: 3),
      wall: wall ?? WallTime(milliseconds: Int64(milliseconds) - 20), payloadByteCount: 0, payloadHash: .zero,
      keyHashes: [])
  }
}
