import Replication
import Testing

@Suite("Blob references")
struct BlobReferenceTests {
  private static let content = Digest(words: (7, 7, 7, 7))
  private static let right = Digest(words: (1, 0, 0, 0))
  private static let wrong = Digest(words: (2, 0, 0, 0))

  private func photo(_ list: Digest) throws -> Value {
    .blob(
      try #require(BlobReference(hash: BlobReferenceTests.content, size: 300_000, type: "image/jpeg", listHash: list)))
  }

  @Test(
    "a list hash is there exactly where the content has several pieces, of which 16 GiB hold no more",
    arguments: [
      (0, false, true), (262_144, false, true), (262_144, true, false), (262_145, true, true), (262_145, false, false),
      (17_179_869_184, true, true), (17_179_869_185, true, false), (-1, false, false),
    ] as [(Int64, Bool, Bool)])
  func shape(size: Int64, hasList: Bool, isTaken: Bool) {
    let blob = BlobReference(
      hash: BlobReferenceTests.content, size: size, type: "", listHash: hasList ? BlobReferenceTests.right : nil)
    #expect((blob != nil) == isTaken)
  }

  @Test("the list hash covers the pieces in their order under a tag of its own")
  func list() {
    // FNV-1a: enough to tell inputs apart.
    @Sendable func hash(_ bytes: UnsafeRawBufferPointer) -> Digest {
      let word = bytes.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
      return Digest(words: (word, UInt64(bytes.count), 0, 0))
    }
    let pieces = [BlobReferenceTests.right, BlobReferenceTests.wrong]
    let input = Array("seamesh/1 pieces".utf8) + pieces.flatMap(\.bytes)
    #expect(BlobReference.listHash(ofPieces: pieces, hash) == input.withUnsafeBytes(hash))
    #expect(BlobReference.listHash(ofPieces: pieces.reversed(), hash) != input.withUnsafeBytes(hash))
  }

  @Test(
    "merge does not tell references to one content apart by their lists: they are equal, with equal canonical bytes")
  func equality() throws {
    let (right, wrong) = (try photo(BlobReferenceTests.right), try photo(BlobReferenceTests.wrong))
    #expect(right == wrong && right.canonicalBytes == wrong.canonicalBytes && Set([right, wrong]).count == 1)
  }

  @Test("of two concurrent writes of one content the greater is shown, and the other is no conflict")
  func concurrent() throws {
    func write(_ high: UInt64, _ value: Value) -> AcceptedWrite {
      AcceptedWrite(
        WriteContext(
          dot: Dot(replica: ReplicaID(high: high, low: 0), sequence: 1), timestamp: HybridTimestamp(rawValue: high),
          context: VersionVector()),
        edit(Operation(.set, [.key("photo")], value: value)))
    }
    let state = DocumentState.merged(of: [
      write(1, try photo(BlobReferenceTests.wrong)), write(2, try photo(BlobReferenceTests.right)),
    ])
    guard case .blob(let shown)? = state.shown()?["photo"] else { return #expect(Bool(false), "shown") }
    #expect(shown.listHash == BlobReferenceTests.right)
    #expect(state.inbox().isEmpty)
  }

  @Test(
    "a wrong list is put right by writing the reference again, wherever it stands",
    arguments: [WriteHints.Kind?.none, .list(key: nil), .set])
  func repair(kind: WriteHints.Kind?) throws {
    var random = MergeRandom(seed: 3)
    func body(_ value: Value) -> ValueMap {
      ValueMap(ascending: [.init(key: "photos", value: .array([.int(1), value]))])
    }
    let hints = WriteHints(kind.map { [(path: [.key("photos")], kind: $0)] } ?? [])
    let replica = ReplicaID(high: 1, low: 0)
    var state = DocumentState()
    for (index, list) in [BlobReferenceTests.wrong, BlobReferenceTests.right].enumerated() {
      let dot = Dot(replica: replica, sequence: UInt64(index) + 1)
      let write = try #require(
        try LocalWrite.write(
          "c", .int(1), state: state, body: body(try photo(list)), hints: hints, erase: true, dot: dot, random: &random),
        "nothing would change")
      let context = WriteContext(
        dot: dot, timestamp: HybridTimestamp(rawValue: dot.sequence), context: VersionVector())
      state.apply(AcceptedWrite(context, write))
    }
    guard case .array(let shown)? = state.shown()?["photos"] else { return #expect(Bool(false), "shown") }
    let lists = shown.compactMap { if case .blob(let blob) = $0 { blob.listHash } else { nil } }
    #expect(lists == [BlobReferenceTests.right])
    let dot = Dot(replica: replica, sequence: 3)
    #expect(
      try LocalWrite.write(
        "c", .int(1), state: state, body: body(try photo(BlobReferenceTests.right)), hints: hints, erase: true,
        dot: dot,
        random: &random) == nil)
  }

  private func edit(_ operation: Operation) -> DocumentWrite {
    DocumentWrite(collection: "c", id: .int(1), kind: .edit, generation: 1, operations: [operation])
  }
}
