import Replication
import Storage
import Wire

/// Changes for measuring: each makes one document of eight fields with 200 bytes of values, as a first sync brings them.
struct BenchmarkBatch {
  /// The body of one run, and what its changes write.
  struct BenchmarkRun {
    let first: UInt64
    let body: [UInt8]
    let writes: [PlacedWrite]
  }

  let runs: [BenchmarkRun]

  static let replica = ReplicaID(high: 0x5eab_0000, low: 1)

  /// Changes `first …` of one chain, `count` of them, in runs of the usual size.
  init(first: Int, count: Int, isAscending: Bool) throws(StoreError) {
    var runs: [BenchmarkRun] = []
    var scanner = PayloadScanner()
    var random = Mixer(state: UInt64(first))
    for start in stride(from: first, to: first + count, by: Run.changeLimit) {
      var body: [UInt8] = []
      var payloads: [(dot: Dot, range: Range<Int>)] = []
      for number in start..<min(start + Run.changeLimit, first + count) {
        let dot = Dot(replica: BenchmarkBatch.replica, sequence: UInt64(number + 1))
        let id = UUIDValue(high: isAscending ? UInt64(number) : random.next(), low: random.next())
        let begin = body.count
        body += BenchmarkBatch.payload(id, dot: dot, &random)
        payloads.append((dot, begin..<body.count))
      }
      var writes: [PlacedWrite] = []
      for payload in payloads { writes += try BenchmarkBatch.writes(body[payload.range], dot: payload.dot, &scanner) }
      runs.append(BenchmarkRun(first: UInt64(start + 1), body: body, writes: writes))
    }
    self.runs = runs
  }

  private static func payload(_ id: UUIDValue, dot: Dot, _ random: inout Mixer) -> [UInt8] {
    let operations = (0..<8).map { field in
      var value: [UInt8] = [0x2a]
      for _ in 0..<3 { appendBigEndian(random.next(), to: &value) }
      return Operation(.set, [.key(Text("field\(field)"))], value: .bytes(value))
    }
    let write = DocumentWrite(collection: "bench", id: .uuid(id), kind: .create, generation: 1, operations: operations)
    return PayloadEncoder.encode([write], dot: dot)
  }

  private static func writes(
    _ payload: ArraySlice<UInt8>, dot: Dot, _ scanner: inout PayloadScanner
  ) throws(StoreError) -> [PlacedWrite] {
    do throws(PayloadError) {
      let timestamp = HybridTimestamp(milliseconds: 1_700_000_000_000 &+ dot.sequence, counter: 0)
      return try scanner.scan(payload, dot: dot).documents.map {
        PlacedWrite(sequence: dot.sequence, timestamp: timestamp, view: $0)
      }
    } catch {
      throw .damaged("a payload made for measuring: \(error)")
    }
  }
}

/// SplitMix64: the system's generator costs a call of the kernel for each number.
private struct Mixer: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var z = state
    z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
    return z ^ (z >> 31)
  }
}
