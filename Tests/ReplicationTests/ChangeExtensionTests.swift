import Replication
import Testing

@Suite("Extensions of changes")
struct ChangeExtensionTests {
  private let origin = ChangeOrigin(
    dot: Dot(replica: ReplicaID(high: 1, low: 2), sequence: 3), hash: Digest(words: (4, 5, 6, 7)))

  private func header(_ extensions: [ChangeExtension]) -> ChangeHeader {
    ChangeHeader(
      sequence: 1, timestamp: .zero, wall: WallTime(milliseconds: 0), payloadByteCount: 0, payloadHash: .zero,
      keyHashes: [], extensions: extensions)
  }

  @Test("an origin is read back from its extension")
  func origins() {
    let item = ChangeExtension(origin)
    #expect(item.type == 0x8001 && item.content.count == 56)
    #expect(header([item]).origin == origin)
    #expect(header([]).origin == nil)
    #expect(ChangeOrigin(item.content.dropLast()) == nil && ChangeOrigin(item.content + [0]) == nil)
    #expect(ChangeOrigin([UInt8](repeating: 0, count: 56)) == nil, "no change has the number 0")
    #expect(ChangeOrigin([UInt8](repeating: 255, count: 56)) == nil, "nor one of 2^53 or more")
  }

  @Test("of the critical types the origin alone is known", arguments: [0x8000, 0x8002, 0x8003, 0xffff] as [UInt16])
  func known(type: UInt16) {
    #expect(header([ChangeExtension(type: type, content: [])]).hasUnknownCriticalExtension)
    #expect(!header([ChangeExtension(type: type & 0x7fff, content: [])]).hasUnknownCriticalExtension)
    #expect(!header([ChangeExtension(origin)]).hasUnknownCriticalExtension)
  }

  @Test("a change that is written again keeps what informs of it, and has the new origin alone")
  func reissue() {
    let first = header([ChangeExtension(type: 2, content: [1]), ChangeExtension(type: 9, content: [2])])
    let again = header(first.extensions(ofReissue: origin))
    #expect(again.origin == origin)
    #expect(again.extensions.map(\.type) == [2, 9, 0x8001])
    let third = ChangeOrigin(dot: Dot(replica: .zero, sequence: 9), hash: .zero)
    #expect(again.extensions(ofReissue: third).map(\.type) == [2, 9, 0x8001])
    #expect(header(again.extensions(ofReissue: third)).origin == third)
  }
}
