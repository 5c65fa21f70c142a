import Replication
import Testing
import TestSupport

@testable import Wire

@Suite("Changes as their headers alone")
struct HeadersOnlyTests {
  @Test(
    "any changes of a run may lose their payloads: hashes and signed bytes stay", arguments: 0..<40 as Range<UInt64>)
  func roundTrip(seed: UInt64) throws {
    var generator = SplitMix64(seed: seed)
    var chain = TestChain(&generator)
    let run = try chain.random(&generator)
    let without = Set(run.changes.indices.filter { _ in generator.chance(60) })
    let encoded = RunCodec.encode(run, headersOnly: without)
    let decoded = try decode(encoded, chain)
    #expect(decoded.changes.map(\.header) == run.changes.map(\.header))
    #expect(decoded.hashes == run.hashes)
    #expect(decoded.signatureMessage == run.record.signedBytes)
    for index in run.changes.indices {
      if case .absent = decoded.contents[index] {
        #expect(without.contains(index))
      } else {
        #expect(!without.contains(index))
      }
      #expect(!without.contains(index) || decoded.changes[index].payload.isEmpty)
    }
    #expect(RunCodec.encode(try decoded.run(context: run.record.context, sha256), headersOnly: without) == encoded)
  }

  @Test("a session's run and a log's have every payload: a header alone is refused there")
  func wholeOnly() throws {
    var generator = SplitMix64(seed: 1)
    var chain = TestChain(&generator)
    let encoded = RunCodec.encode(try run(&chain, payload(&generator, chain.dot(0))), headersOnly: [0])
    #expect(throws: Never.self) { try decode(encoded, chain) }
    guard case .encoding(let error) = failure({ try decode(encoded, chain, form: .whole) }) else {
      return #expect(Bool(false), "refused")
    }
    #expect(error.kind == .wrongLength)
  }

  @Test("a large payload that is left out is told from one that travels apart")
  func large() throws {
    var generator = SplitMix64(seed: 2)
    var chain = TestChain(&generator)
    let run = try run(&chain, largePayload(chain.dot(0)))
    let (apart, absent) = (RunCodec.encode(run), RunCodec.encode(run, headersOnly: [0]))
    #expect(apart != absent)
    #expect(try decode(apart, chain).hashes == decode(absent, chain).hashes)
    guard case .apart = try decode(apart, chain).contents[0], case .absent = try decode(absent, chain).contents[0]
    else {
      return #expect(Bool(false), "told apart")
    }
  }

  @Test("any count of key hashes is taken, none among them", arguments: [0, 1, 1_000, 1_001, 20_000])
  func keyHashes(count: Int) throws {
    var generator = SplitMix64(seed: 3)
    var chain = TestChain(&generator)
    let run = try run(&chain, payload(&generator, chain.dot(0)))
    var header = run.changes[0].header
    header.keyHashes = (0..<count).map { KeyHash(high: UInt64($0), low: 1) }
    let odd = Run(record: run.record, changes: [Change(header: header, payload: [])], hashes: [])
    let decoded = try decode(RunCodec.encode(odd, headersOnly: [0]), chain)
    #expect(decoded.changes[0].header == header)
    let hash = header.chainHash(
      chain: chain.chain, previous: run.record.hashBefore, contextDigest: run.record.contextDigest, sha256)
    #expect(decoded.hashes == [hash])
  }

  @Test(
    "what a payload may not be, the header of one may not say",
    arguments: [
      (0, 1, RunError.payloadPlace(change: 1)), (16_384, 2, nil), (16_385, 1, nil),
      (16_385, 2, .payloadPlace(change: 1)), (16_384, 3, .payloadByteCount(49_152, limit: Run.payloadByteLimit)),
      (4_128_769, 1, .payloadByteCount(4_128_769, limit: Run.changePayloadByteLimit)),
    ] as [(UInt32, Int, RunError?)])
  func payloadLimits(byteCount: UInt32, count: Int, expected: RunError?) throws {
    var generator = SplitMix64(seed: 4)
    var chain = TestChain(&generator)
    let run = try run(&chain, payload(&generator, chain.dot(0)))
    var header = run.changes[0].header
    header.payloadByteCount = byteCount
    let changes = [Change](repeating: Change(header: header, payload: []), count: count)
    let encoded = RunCodec.encode(
      Run(record: run.record, changes: changes, hashes: []), headersOnly: Set(changes.indices))
    #expect(failure { try decode(encoded, chain) } == expected)
  }

  @Test("a damaged run is refused, or has the one form of what it says", arguments: 0..<30 as Range<UInt64>)
  func mutation(seed: UInt64) throws {
    var generator = SplitMix64(seed: seed)
    var chain = TestChain(&generator)
    let run = try chain.random(&generator)
    let mutations = Mutations(original: RunCodec.encode(run, headersOnly: Set(run.changes.indices)))
    for _ in 0..<300 {
      let damaged = mutations.random(&generator)
      guard let decoded = try? decode(damaged, chain) else { continue }
      let absent = Set(
        decoded.contents.indices.filter { if case .absent = decoded.contents[$0] { true } else { false } })
      let record = RunRecord(
        chain: decoded.chain, first: decoded.first, last: decoded.last, hashBefore: decoded.hashBefore,
        context: VersionVector(), contextDigest: decoded.contextDigest, hashAtLast: decoded.hashAtLast,
        signature: decoded.signature)
      let again = Run(record: record, changes: decoded.changes, hashes: decoded.hashes)
      #expect(RunCodec.encode(again, headersOnly: absent) == damaged)
    }
  }

  private func decode(
    _ encoded: [UInt8], _ chain: TestChain, form: RunForm = .withHeadersOnly
  ) throws(RunError) -> DecodedRun {
    try RunCodec.decode(
      encoded[...], fleet: chain.chain.fleet, partition: chain.chain.partition, form: form, hash: sha256)
  }

  private func run(_ chain: inout TestChain, _ payload: [UInt8]) throws -> Run {
    try chain.run([chain.header(0, milliseconds: 9)], payloads: [payload])
  }

  private func payload(_ generator: inout SplitMix64, _ dot: Dot) -> [UInt8] {
    PayloadEncoder.encode(generator.writes(dot: dot, count: 1), dot: dot)
  }

  private func largePayload(_ dot: Dot) -> [UInt8] {
    let value = Value.bytes([UInt8](repeating: 7, count: Run.inlinePayloadByteLimit))
    let operation = Operation(.set, [.key("x")], value: value)
    let write = DocumentWrite(collection: "c", id: .int(1), kind: .create, generation: 1, operations: [operation])
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
