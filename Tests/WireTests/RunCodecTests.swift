import Foundation
import Replication
import Testing
import TestSupport

@testable import Wire

@Suite("Runs")
struct RunCodecTests {
  @Test("decoding undoes encoding and computes the hashes that the author signed", arguments: 0..<40 as Range<UInt64>)
  func roundTrip(seed: UInt64) throws {
    var generator = SplitMix64(seed: seed)
    var chain = TestChain(&generator)
    for _ in 0..<4 {
      let run = try chain.random(&generator)
      let encoded = RunCodec.encode(run)
      let decoded = try decode(encoded, chain)
      let again = try decoded.run(context: run.record.context, sha256)
      #expect(again.record == run.record)
      #expect(again.changes == run.changes.map { $0.header.isApart ? Change(header: $0.header, payload: []) : $0 })
      #expect(again.hashes == run.hashes)
      #expect(decoded.signatureMessage == run.record.signedBytes)
      #expect(RunCodec.encode(again) == encoded)
    }
  }

  @Test("payloads are slices of the run's bytes, and their documents are shown at the same indices")
  func slices() throws {
    var generator = SplitMix64(seed: 1)
    var chain = TestChain(&generator)
    let writes = PayloadEncoder.sorted(generator.writes(dot: chain.dot(0), count: 3))
    let run = try chain.run(
      [chain.header(0, milliseconds: 5)], payloads: [PayloadEncoder.encode(writes, dot: chain.dot(0))])
    let buffer = [0, 1, 2] + RunCodec.encode(run)
    let decoded = try RunCodec.decode(
      buffer[3...], fleet: chain.chain.fleet, partition: chain.chain.partition, hash: sha256)
    guard case .documents(let scan) = decoded.contents[0] else { return #expect(Bool(false), "judged at once") }
    let keys = try scan.documents.map { try $0.key(in: decoded.changes[0].payload) }
    #expect(keys == writes.map { DocumentKey(collection: $0.collection, id: $0.id) })
    #expect(decoded.changes[0].header.keyHashes == keys.map { $0.hash(in: chain.chain.partition, sha256) })
    #expect(try scan.documents[0].key(in: buffer[...]) == keys[0])
    #expect(decoded.encoded == buffer[3...])
  }

  @Test("clock readings far apart, backwards and at their ends keep their value")
  func clocks() throws {
    var generator = SplitMix64(seed: 2)
    var chain = TestChain(&generator)
    let stamps: [UInt64] = [.max, 0, 1 << 63, 5, .max]
    let walls: [Int64] = [.min, .max, 0, -1, .min]
    let headers = (0..<5).map { index in
      var header = chain.header(index, milliseconds: 0)
      header.timestamp = HybridTimestamp(rawValue: stamps[index])
      header.wall.milliseconds = walls[index]
      return header
    }
    let payloads = (0..<5).map {
      PayloadEncoder.encode(generator.writes(dot: chain.dot($0), count: 1), dot: chain.dot($0))
    }
    let decoded = try decode(RunCodec.encode(try chain.run(headers, payloads: payloads)), chain)
    #expect(decoded.changes.map(\.header.timestamp.rawValue) == stamps)
    #expect(decoded.changes.map(\.header.wall.milliseconds) == walls)
  }

  @Test("a run with another context than the author had is refused")
  func context() throws {
    var generator = SplitMix64(seed: 3)
    var chain = TestChain(&generator)
    let run = try chain.random(&generator)
    let decoded = try decode(RunCodec.encode(run), chain)
    var other = run.record.context
    other[generator.replica()] = ChainPosition(sequence: 1, tip: .zero)
    #expect(throws: RunError.contextDigest) { try decoded.run(context: other, sha256) }
    #expect(throws: Never.self) { try decoded.run(context: run.record.context, sha256) }
  }

  @Test("the signature is checked over the signed bytes, with the author's key")
  func signature() throws {
    var generator = SplitMix64(seed: 4)
    var chain = TestChain(&generator)
    let run = try chain.run(
      [chain.header(0, milliseconds: 9)], payloads: [payload(&generator, chain.dot(0))],
      signature: generator.signature())
    let key = PublicKey(generator.digest())
    let decoded = try decode(RunCodec.encode(run), chain)
    try decoded.verifySignature(of: key) { $0 == run.record.signature && $1 == run.record.signedBytes && $2 == key }
    #expect(throws: RunError.signature) { try decoded.verifySignature(of: key) { _, _, _ in false } }
  }

  @Test("a run cut off at any byte is refused", arguments: 0..<4 as Range<UInt64>)
  func truncation(seed: UInt64) throws {
    var generator = SplitMix64(seed: seed)
    var chain = TestChain(&generator)
    for part in Mutations(original: RunCodec.encode(try chain.random(&generator))).truncations {
      #expect(throws: RunError.self) {
        try RunCodec.decode(part, fleet: chain.chain.fleet, partition: chain.chain.partition, hash: noHash)
      }
    }
  }

  @Test("a damaged run is refused, or has the one form of what it says", arguments: 0..<30 as Range<UInt64>)
  func mutation(seed: UInt64) throws {
    var generator = SplitMix64(seed: seed)
    var chain = TestChain(&generator)
    let run = try chain.random(&generator)
    let mutations = Mutations(original: RunCodec.encode(run))
    for _ in 0..<300 {
      let damaged = mutations.random(&generator)
      guard
        let decoded = try? RunCodec.decode(
          damaged[...], fleet: chain.chain.fleet, partition: chain.chain.partition, hash: noHash)
      else { continue }
      let record = RunRecord(
        chain: decoded.chain, first: decoded.first, last: decoded.last, hashBefore: decoded.hashBefore,
        context: VersionVector(), contextDigest: decoded.contextDigest,
        hashAtLast: decoded.hashAtLast, signature: decoded.signature)
      let again = Run(record: record, changes: decoded.changes, hashes: decoded.hashes)
      #expect(RunCodec.encode(again) == damaged)
    }
  }

  func decode(_ encoded: [UInt8], _ chain: TestChain) throws(RunError) -> DecodedRun {
    try RunCodec.decode(encoded[...], fleet: chain.chain.fleet, partition: chain.chain.partition, hash: sha256)
  }

  func payload(_ generator: inout SplitMix64, _ dot: Dot) -> [UInt8] {
    PayloadEncoder.encode(generator.writes(dot: dot, count: 1), dot: dot)
  }
}

/// Stands for a hash where its value does not matter.
func noHash(_ bytes: UnsafeRawBufferPointer) -> Digest { Digest(words: (UInt64(bytes.count), 0, 0, 0)) }

extension RunCodecTests {
  @Test("a change of an unknown codec, or with an unknown critical extension, is read and held")
  func held() throws {
    var generator = SplitMix64(seed: 5)
    for mark in 0..<2 {
      var chain = TestChain(&generator)
      var header = chain.header(0, milliseconds: 9)
      header.keyHashes = [KeyHash(high: 1, low: 2), KeyHash(high: 3, low: 4)]
      if mark == 0 { header.codec = .sealed }
      if mark == 1 { header.extensions = [ChangeExtension(type: ChangeExtension.criticalBit | 7, content: [1])] }
      let run = try chain.run([header], payloads: [[1, 2, 3]])
      let decoded = try decode(RunCodec.encode(run), chain)
      guard case .held = decoded.contents[0] else { return #expect(Bool(false), "held") }
      #expect(decoded.changes[0] == run.changes[0])
      #expect(decoded.hashes == run.hashes)
    }
  }

  @Test("the origin of a re-issued change is critical, known, and holds nothing")
  func origin() throws {
    var generator = SplitMix64(seed: 13)
    var chain = TestChain(&generator)
    let origin = ChangeOrigin(dot: Dot(replica: generator.replica(), sequence: 77), hash: generator.digest())
    var header = chain.header(0, milliseconds: 9)
    header.extensions = [ChangeExtension(origin)]
    let run = try chain.run([header], payloads: [payload(&generator, chain.dot(0))])
    let decoded = try decode(RunCodec.encode(run), chain)
    guard case .documents = decoded.contents[0] else { return #expect(Bool(false), "judged") }
    #expect(decoded.changes[0].header.origin == origin)
  }

  @Test(
    "an origin that is not replica, sequence and hash is refused; another critical content is nobody's to judge",
    arguments: [
      (0x8001, 55, 1, false), (0x8001, 57, 1, false), (0x8001, 56, 0, false), (0x8001, 56, 1, true),
      (0x8002, 3, 0, true), (0x0003, 9, 0, true),
    ] as [(UInt16, Int, UInt8, Bool)])
  func malformedOrigin(type: UInt16, byteCount: Int, sequence: UInt8, isRead: Bool) throws {
    var content = [UInt8](repeating: 0, count: byteCount)
    if byteCount > 23 { content[23] = sequence }
    let writer = CBORWriter.encoding {
      $0.mapHeader(1)
      $0.unsigned(ChangeOption.extensions)
      $0.mapHeader(1)
      $0.unsigned(type)
      $0.byteString(content)
    }
    var reader = CBORReader(writer)
    #expect(((try? reader.readChangeOptions()) != nil) == isRead)
  }

  @Test("a run has six items: a map of options before its changes is refused")
  func runOptions() throws {
    var generator = SplitMix64(seed: 14)
    var chain = TestChain(&generator)
    let run = try chain.run([chain.header(0, milliseconds: 1)], payloads: [payload(&generator, chain.dot(0))])
    var encoded = RunCodec.encode(run)
    let changes = 1 + 17 + 1 + 34 + 34
    #expect(encoded[changes] == 0x81)
    encoded[0] = 0x87
    encoded.insert(contentsOf: [0xa1, 0x02, 0x06], at: changes)
    #expect(failure { try decode(encoded, chain) } == .encoding(CBORError(.wrongLength, at: 0)))
  }

  @Test("an unknown extension that is not critical holds nothing")
  func uncritical() throws {
    var generator = SplitMix64(seed: 6)
    var chain = TestChain(&generator)
    var header = chain.header(0, milliseconds: 9)
    header.extensions = [ChangeExtension(type: 7, content: [1])]
    let run = try chain.run([header], payloads: [payload(&generator, chain.dot(0))])
    guard case .documents = try decode(RunCodec.encode(run), chain).contents[0] else {
      return #expect(Bool(false), "judged")
    }
  }

  @Test("a payload over 16 KiB travels apart, alone in its run, and is judged when it arrives")
  func apart() throws {
    var generator = SplitMix64(seed: 7)
    var chain = TestChain(&generator)
    let dot = chain.dot(0)
    let large = largePayload(dot, valueByteCount: Run.inlinePayloadByteLimit)
    let run = try chain.run([chain.header(0, milliseconds: 9)], payloads: [large])
    let encoded = RunCodec.encode(run)
    #expect(encoded.count < 400)
    let decoded = try decode(encoded, chain)
    guard case .apart = decoded.contents[0] else { return #expect(Bool(false), "still to come") }
    let header = decoded.changes[0].header
    #expect(header == run.changes[0].header && decoded.hashes == run.hashes)
    func scan(_ payload: [UInt8], _ header: ChangeHeader) throws(RunError) -> PayloadScan {
      try RunCodec.scanApart(payload[...], of: header, at: dot, partition: chain.chain.partition, hash: sha256)
    }
    #expect(try scan(large, header).documents.count == 1)
    #expect(throws: RunError.payloadMismatch(change: 1)) { try scan(large + [0], header) }
    #expect(throws: RunError.payloadMismatch(change: 1)) { try scan(large.dropLast() + [1], header) }
    var otherKeys = header
    otherKeys.keyHashes = [KeyHash(high: 0, low: 0)]
    #expect(throws: RunError.payloadMismatch(change: 1)) { try scan(large, otherKeys) }
    var broken = header
    let noPayload = [UInt8](repeating: 0xff, count: Run.inlinePayloadByteLimit + 1)
    (broken.payloadHash, broken.payloadByteCount) = (Digest.of(noPayload, sha256), UInt32(noPayload.count))
    let reason = PayloadError(.encoding(.unexpectedType), at: 0)
    #expect(throws: RunError.malformed(change: 1, reason: reason)) { try scan(noPayload, broken) }
  }

  @Test("payloads of 16 KiB stay in the run, of which they may fill 32 KiB")
  func payloadLimits() throws {
    var generator = SplitMix64(seed: 8)
    for (count, expected) in [(2, nil), (3, RunError.payloadByteCount(49152, limit: Run.payloadByteLimit))] {
      var chain = TestChain(&generator)
      let payloads = (0..<count).map { offset in
        let frame = largePayload(chain.dot(offset), valueByteCount: 16000).count - 16000
        return largePayload(chain.dot(offset), valueByteCount: Run.inlinePayloadByteLimit - frame)
      }
      #expect(payloads.allSatisfy { $0.count == Run.inlinePayloadByteLimit })
      let headers = (0..<count).map { chain.header($0, milliseconds: 9) }
      let encoded = RunCodec.encode(try chain.run(headers, payloads: payloads))
      #expect(failure { try decode(encoded, chain) } == expected)
    }
  }

  @Test("64 changes make a run, 65 are refused, and so is none")
  func changeLimit() throws {
    var generator = SplitMix64(seed: 9)
    for (count, expected) in [(64, nil), (65, RunError.changeCount(65, limit: 64)), (0, .changeCount(0, limit: 64))] {
      var chain = TestChain(&generator)
      let payloads = (0..<count).map { payload(&generator, chain.dot($0)) }
      let headers = (0..<count).map { chain.header($0, milliseconds: UInt64($0)) }
      let encoded = RunCodec.encode(try chain.run(headers, payloads: payloads))
      #expect(failure { try decode(encoded, chain) } == expected)
    }
  }

  @Test("a run whose change breaks rule M4 is refused, with the change and the reason")
  func malformed() throws {
    var generator = SplitMix64(seed: 10)
    var chain = TestChain(&generator)
    let good = payload(&generator, chain.dot(0))
    let run = try chain.run([chain.header(0, milliseconds: 1)], payloads: [good])
    let bad = Change(header: run.changes[0].header, payload: [0x80])
    let encoded = RunCodec.encode(Run(record: run.record, changes: [run.changes[0], bad], hashes: run.hashes))
    guard case .malformed(change: 2, let error) = failure({ try decode(encoded, chain) }) else {
      return #expect(Bool(false), "malformed")
    }
    #expect(error.reason == .documentCount(0, limit: Run.documentLimit))
  }

  @Test(
    "options that say what their absence says, are unknown, or stand in the wrong order are refused",
    arguments: [
      ("a0", .wrongLength), ("a10100", .outOfRange), ("a10119012c", .outOfRange), ("a102a0", .wrongLength),
      ("a10340", .wrongLength), ("a1034101", .wrongLength), ("a10401", .unsupported), ("a10001", .unsupported),
      ("a202a101400101", .keyOrder), ("a201010102", .keyOrder), ("a2010318200a", .unsupported),
      ("a102a201400140", .keyOrder), ("a102a11a0001000040", .outOfRange), ("a102a1198001420000", .outOfRange),
    ] as [(String, CBORError.Kind)])
  func options(encoded: String, kind: CBORError.Kind) {
    var reader = CBORReader(bytes(encoded))
    #expect(kindOfFailure { try reader.readChangeOptions() } == kind)
  }

  @Test("key hashes are refused where they follow from the payload, and missed where they do not")
  func keyHashes() throws {
    var generator = SplitMix64(seed: 11)
    var chain = TestChain(&generator)
    let run = try chain.run([chain.header(0, milliseconds: 1)], payloads: [payload(&generator, chain.dot(0))])
    var header = run.changes[0].header
    header.codec = .zstd
    let sealed = RunCodec.encode(Run(record: run.record, changes: [Change(header: header, payload: [1])], hashes: []))
    #expect(throws: Never.self) { try decode(sealed, chain) }
    // The same options, the codec's left out.
    let withKeys = hex(sealed).replacing("a201010350", with: "a10350")
    guard case .options = failure({ try decode(bytes(withKeys), chain) }) else { return #expect(Bool(false), "given") }
    let tail = hex(sealed).components(separatedBy: "a201010350")
    let withoutKeys = tail[0] + "a10101" + tail[1].dropFirst(32)
    guard case .options = failure({ try decode(bytes(withoutKeys), chain) }) else {
      return #expect(Bool(false), "missing")
    }
  }

  @Test("a sequence that would leave the numbers' range is refused")
  func sequence() throws {
    var generator = SplitMix64(seed: 12)
    var chain = TestChain(&generator)
    let run = try chain.run([chain.header(0, milliseconds: 1)], payloads: [payload(&generator, chain.dot(0))])
    for (first, expected) in [((1 << 53) - 1, nil), (1 << 53, RunError.encoding(CBORError(.outOfRange, at: 18)))]
      as [(UInt64, RunError?)]
    {
      let record = run.record
      let moved = RunRecord(
        chain: record.chain, first: first, last: first, hashBefore: record.hashBefore, context: record.context,
        contextDigest: record.contextDigest, hashAtLast: record.hashAtLast, signature: record.signature)
      let changes = [
        Change(header: run.changes[0].header, payload: PayloadEncoder.encode([plainWrite], dot: chain.dot(0))[...])
      ]
      #expect(
        failure { try decode(RunCodec.encode(Run(record: moved, changes: changes, hashes: [])), chain) } == expected)
    }
  }

  private var plainWrite: DocumentWrite {
    DocumentWrite(
      collection: "c", id: .int(1), kind: .edit, generation: 3,
      operations: [Operation(.set, [.key("x")], value: .null)])
  }

  private func largePayload(_ dot: Dot, valueByteCount: Int) -> [UInt8] {
    let value = Value.bytes([UInt8](repeating: 7, count: valueByteCount))
    let write = DocumentWrite(
      collection: "c", id: .int(1), kind: .create, generation: 1,
      operations: [Operation(.set, [.key("x")], value: value)])
    return PayloadEncoder.encode([write], dot: dot)
  }

  private func failure(_ body: () throws -> some Any) -> RunError? {
    do {
      _ = try body()
      return nil
    } catch {
      return error as? RunError
    }
  }
}

extension TestChain {
  /// A run of any shape that is well formed.
  mutating func random(_ generator: inout SplitMix64) throws -> Run {
    let count = 1 + generator.below(5)
    var (headers, payloads): ([ChangeHeader], [[UInt8]]) = ([], [])
    for offset in 0..<count {
      headers.append(randomHeader(offset, &generator))
      payloads.append(
        headers[offset].isOpaque
          ? generator.bytes(1 + generator.below(30))
          : PayloadEncoder.encode(generator.writes(dot: dot(offset), count: 1 + generator.below(3)), dot: dot(offset)))
    }
    return try run(
      headers, payloads: payloads, context: generator.vector(count: generator.below(4)),
      signature: generator.signature())
  }

  private func randomHeader(_ offset: Int, _ generator: inout SplitMix64) -> ChangeHeader {
    var header = header(offset, milliseconds: 1_700_000_000_000 + UInt64(offset * 9))
    if generator.chance(20) { header.timestamp = HybridTimestamp(rawValue: generator.next()) }
    if generator.chance(20) {
      header.extensions = [ChangeExtension(type: 1, content: []), ChangeExtension(type: 300, content: [1, 2])]
    }
    if generator.chance(20) { header.codec = .sealed }
    if generator.chance(10) { header.extensions.append(ChangeExtension(type: 0x8000, content: [])) }
    if generator.chance(20) {
      let dot = Dot(replica: generator.replica(), sequence: 77)
      header.extensions.append(ChangeExtension(ChangeOrigin(dot: dot, hash: generator.digest())))
    }
    if header.isOpaque {
      header.keyHashes = (0..<1 + generator.below(3)).map { _ in
        KeyHash(high: generator.next(), low: generator.next())
      }
    }
    return header
  }
}
