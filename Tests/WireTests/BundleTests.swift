import Replication
import Testing
import TestSupport

@testable import Wire

@Suite("Bundles")
struct BundleTests {
  @Test("decoding undoes encoding, payloads that travel apart included", arguments: 0..<20 as Range<UInt64>)
  func roundTrip(seed: UInt64) throws {
    var generator = SplitMix64(seed: seed)
    let bundle = try generator.bundle()
    let encoded = BundleCodec.encode(bundle)
    #expect(try BundleCodec.decode(encoded[...]) == bundle)
  }

  @Test("a damaged bundle is refused, or has the one form of what it says", arguments: 0..<20 as Range<UInt64>)
  func mutation(seed: UInt64) throws {
    var generator = SplitMix64(seed: seed)
    let mutations = Mutations(original: BundleCodec.encode(try generator.bundle(isLarge: false)))
    for part in mutations.truncations { #expect(throws: CBORError.self) { try BundleCodec.decode(part) } }
    for _ in 0..<300 {
      let damaged = mutations.random(&generator)
      guard let bundle = try? BundleCodec.decode(damaged[...]) else { continue }
      #expect(BundleCodec.encode(bundle) == damaged)
    }
  }

  @Test("a payload stands beside a run exactly where it travels apart from it")
  func payloadPlace() throws {
    var generator = SplitMix64(seed: 1)
    let (small, large) = (try generator.entry(isLarge: false), try generator.entry(isLarge: true))
    let name = try PartitionName("room=1")
    func kind(_ entry: Bundle.Entry) -> CBORError.Kind? {
      let partition = Bundle.Partition(name: name, runs: [entry])
      let bundle = Bundle(fleet: FleetID(.zero), statements: [], partitions: [partition])
      return kindOfFailure { try BundleCodec.decode(BundleCodec.encode(bundle)[...]) }
    }
    #expect(kind(small) == nil && kind(large) == nil)
    #expect(
      kind(Bundle.Entry(context: small.context, encoded: small.encoded, payload: [1])) == .wrongLength)
    #expect(kind(Bundle.Entry(context: large.context, encoded: large.encoded)) == .wrongLength)
  }

  @Test("partitions ascend by name, and none is empty")
  func partitions() throws {
    var generator = SplitMix64(seed: 2)
    let entry = try generator.entry(isLarge: false)
    func kind(_ partitions: [(String, [Bundle.Entry])]) throws -> CBORError.Kind? {
      let partitions = try partitions.map { Bundle.Partition(name: try PartitionName(Text($0.0)), runs: $0.1) }
      let bundle = Bundle(fleet: FleetID(.zero), statements: [], partitions: partitions)
      return kindOfFailure { try BundleCodec.decode(BundleCodec.encode(bundle)[...]) }
    }
    #expect(try kind([("a", [entry]), ("b", [entry])]) == nil)
    #expect(try kind([("b", [entry]), ("a", [entry])]) == .keyOrder)
    #expect(try kind([("a", [entry]), ("a", [entry])]) == .keyOrder)
    #expect(try kind([("a", [])]) == .wrongLength)
  }

  @Test("another version, more bytes or more statements than may be are refused")
  func limits() throws {
    let bundle = Bundle(fleet: FleetID(.zero), statements: [], partitions: [])
    var other = BundleCodec.encode(bundle)
    other[1] = 2
    #expect(kindOfFailure { try BundleCodec.decode(other[...]) } == .unsupported)
    let long = [UInt8](repeating: 0, count: BundleCodec.byteLimit + 1)
    #expect(kindOfFailure { try BundleCodec.decode(long[...]) } == .tooLong)
    for (count, expected) in [(BundleCodec.statementLimit, nil), (BundleCodec.statementLimit + 1, .tooLong)]
      as [(Int, CBORError.Kind?)]
    {
      let many = Bundle(
        fleet: FleetID(.zero), statements: [ArraySlice<UInt8>](repeating: [1], count: count), partitions: [])
      #expect(kindOfFailure { try BundleCodec.decode(BundleCodec.encode(many)[...]) } == expected)
    }
  }
}

extension SplitMix64 {
  fileprivate mutating func bundle(isLarge: Bool = true) throws -> Bundle {
    let statements = (0..<below(3)).map { _ in bytes(1 + below(40))[...] }
    var partitions: [Bundle.Partition] = []
    for name in ["a", "b"].prefix(below(3)) {
      var runs: [Bundle.Entry] = []
      for index in 0..<1 + below(3) { runs.append(try entry(isLarge: isLarge && index == 1)) }
      partitions.append(Bundle.Partition(name: try PartitionName(Text(name)), runs: runs))
    }
    return Bundle(fleet: FleetID(digest()), statements: statements, partitions: partitions)
  }

  fileprivate mutating func entry(isLarge: Bool) throws -> Bundle.Entry {
    var chain = TestChain(&self)
    let dot = chain.dot(0)
    let value = Value.bytes(bytes(isLarge ? Run.inlinePayloadByteLimit : 9))
    let operation = Operation(.set, [.key("x")], value: value)
    let write = DocumentWrite(collection: "c", id: .int(1), kind: .create, generation: 1, operations: [operation])
    let payload = PayloadEncoder.encode([write], dot: dot)
    let run = try chain.run([chain.header(0, milliseconds: 9)], payloads: [payload])
    let context: ContextForm = chance(50) ? .full(vector(count: below(3))) : .increments([])
    return Bundle.Entry(
      context: context, encoded: RunCodec.encode(run)[...], payload: isLarge ? payload[...] : nil)
  }
}
