import Testing
import Wire

@testable import Engine
@testable import Replication
@testable import Storage

/// Pieces that their sender has no business to send: whom they disturb.
@Suite struct SpoiledPieceTests {
  private let room: PartitionName
  private let payload: ApartPayload
  private let bench: EngineBench
  /// From the member who sends what is wrong, to node 1.
  private let session: SessionID

  /// Node 0 has written a large document, of which nodes 1 and 2 have nothing yet; 2 has met 1.
  init() throws {
    room = try PartitionName("room=1")
    bench = try EngineBench(3)
    for node in bench.nodes { try node.subscribe("room=*") }
    let node = bench.nodes[0]
    try node.write(room, Put("large", byteCount: 700_000))
    let (runs, _) = try LogReader(node.state).runs(node.id(of: room), lackedBy: VersionVector(), byteLimit: .max)
    payload = try #require(runs.first?.apart)
    session = bench.meet(2, 1)
  }

  /// Node 1 takes them in as from node 2.
  private func send(_ pieces: [PayloadPiece]) {
    bench.nodes[1].engine.turn(pieces.map { bench.event(MessageCodec.encode(.payloadPiece($0)), session, 1) })
    bench.dropWire()
  }

  private func pieces(of payload: ApartPayload, _ name: PartitionName? = nil, stream: UInt64 = 0) -> [PayloadPiece] {
    let count = payload.bytes.count
    return stride(from: 0, to: count, by: PayloadPiece.byteLimit).map { offset in
      let bytes = payload.bytes[(payload.bytes.startIndex + offset)...].prefix(PayloadPiece.byteLimit)
      return PayloadPiece(
        name: name ?? room, stream: stream, hash: payload.hash, total: UInt64(count), offset: UInt64(offset),
        bytes: bytes)
    }
  }

  private func noise(_ byte: UInt8, byteCount: Int, as hash: Digest) -> ApartPayload {
    ApartPayload(hash: hash, bytes: [UInt8](repeating: byte, count: byteCount)[...])
  }

  private var forged: [PayloadPiece] { pieces(of: noise(1, byteCount: payload.bytes.count, as: payload.hash)) }
  private func isOpen(_ session: SessionID) -> Bool { bench.nodes[1].state.mesh.sessions[session] != nil }
  private var shares: [StagedShare] { get throws { try bench.nodes[1].store.stagedShares() } }

  @Test("pieces that one member spoils do not disturb what another sends of the same payload")
  func poison() throws {
    send(Array(forged.dropLast()))
    #expect(try shares.map(\.byteCount) == [655_360])
    let honest = bench.meet(1, 0)
    #expect(isOpen(honest) && isOpen(session))
    #expect(try bench.nodes[1].shown(room, "large") == bench.nodes[0].shown(room, "large"))
    #expect(try shares.isEmpty)
  }

  @Test("who sends all of a payload that is not what it says is closed, alone, and its pieces are gone")
  func blamed() throws {
    let honest = bench.connect(1, 0)
    bench.run(until: { (try? bench.nodes[1].count("staged_pieces")) ?? 0 >= 3 })
    bench.nodes[1].engine.turn(forged.map { bench.event(MessageCodec.encode(.payloadPiece($0)), session, 1) })
    #expect(!isOpen(session) && isOpen(honest))
    #expect(try shares.map(\.key.device) == [bench.nodes[0].state.identity.deviceID])
    bench.run()
    for _ in 0..<4 { bench.advance(100) }
    #expect(isOpen(honest))
    #expect(try bench.nodes[1].shown(room, "large") != nil)
  }

  @Test("what is whole serves any session: nothing of it is sent again")
  func whole() throws {
    send(pieces(of: payload))
    #expect(try shares.map(\.isWhole) == [true])
    bench.nodes[0].trace.clear()
    let honest = bench.meet(1, 0)
    #expect(!bench.nodes[0].trace.entries.contains(.sent(honest, "payloadPiece")))
    #expect(try bench.nodes[1].shown(room, "large") != nil && isOpen(honest))
  }

  @Test("pieces outside of the common scope, or on a stream that is not open, leave nothing and do no harm")
  func scope() throws {
    send(pieces(of: payload, try PartitionName("agency=1")))
    send(pieces(of: payload, stream: 77))
    #expect(try shares.isEmpty && isOpen(session))
    // And a run that comes on such a stream, behind them, is dropped as they were.
    let (runs, _) = try LogReader(bench.nodes[0].state).runs(
      bench.nodes[0].id(of: room), lackedBy: VersionVector(), byteLimit: .max)
    let entries = runs.map { RunBatch.Entry(context: .full($0.context), encoded: $0.encoded) }
    let frame = MessageCodec.encode(.runs(RunBatch(name: room, stream: 77, entries: entries)))
    bench.nodes[1].engine.turn([bench.event(frame, session, 1)])
    #expect(isOpen(session))
  }

  @Test("pieces that do not follow on one another break the protocol", arguments: [2, 5])
  func outOfOrder(next: Int) throws {
    send([forged[0], forged[next]])
    #expect(!isOpen(session))
  }

  @Test("a payload that was left in the midst may begin again, whatever came between")
  func begunAgain() throws {
    let all = pieces(of: payload)
    let other = pieces(of: noise(2, byteCount: 200_000, as: Digest(words: (1, 2, 3, 4))))
    send([all[0], other[0]] + all + [other[1]])
    #expect(isOpen(session))
    #expect(try shares.contains { $0.isWhole && $0.key.hash == payload.hash })
  }

  @Test(
    "pieces that nobody could cut off a payload break the protocol",
    arguments: [
      (total: 16_384, offset: 0, count: 16_384), (4_128_769, 0, 65_536), (20_000, 20_000, 0), (20_000, 20_001, 1),
      (20_000, 19_999, 2), (20_000, 0, 16_383), (200_000, 0, 65_537), (20_000, 16_384, 0),
    ])
  func impossible(total: UInt64, offset: UInt64, count: Int) throws {
    let bytes = [UInt8](repeating: 1, count: count)[...]
    send([PayloadPiece(name: room, stream: 0, hash: payload.hash, total: total, offset: offset, bytes: bytes)])
    #expect(!isOpen(session))
  }

  /// Four payloads of the largest size but for their last piece, and one more.
  private func flood() {
    for byte in 2...6 as ClosedRange<UInt8> {
      let hash = Digest(words: (UInt64(byte), 0, 0, 0))
      // One payload has to end before the next begins: each on a connection of its own.
      let flooding = bench.connect(2, 1)
      bench.run()
      let all = pieces(of: noise(byte, byteCount: Run.changePayloadByteLimit, as: hash)).dropLast()
      bench.nodes[1].engine.turn(all.map { bench.event(MessageCodec.encode(.payloadPiece($0)), flooding, 1) })
      bench.dropWire()
      bench.cut(flooding)
    }
  }

  @Test("a device that sends too much displaces its own pieces, and nobody else's")
  func bound() throws {
    let honest = bench.connect(1, 0)
    bench.run(until: { (try? bench.nodes[1].count("staged_pieces")) ?? 0 >= 3 })
    bench.dropWire()
    bench.cut(honest)
    bench.cut(session)
    let before = try shares
    #expect(before.count == 1)
    flood()
    let after = try shares
    #expect(after.contains(before[0]))
    #expect(after.count == 2, "what came before the last one of the flood is gone")
    bench.nodes[0].trace.clear()
    bench.meet(1, 0)
    let sent = bench.nodes[0].trace.entries.count { if case .sent(_, "payloadPiece") = $0 { true } else { false } }
    #expect(sent == 11 - Int(before[0].byteCount) / PayloadPiece.byteLimit)
  }

  @Test("what was whole when it was relied on, and is gone since, is asked for again from whom it is lacking")
  func lost() throws {
    send(pieces(of: payload))
    bench.cut(session)
    let honest = bench.connect(1, 0)
    let partition = bench.nodes[1].id(of: room)
    func named() -> [Digest: UInt64] {
      bench.nodes[1].state.mesh.sessions[honest]?.live?.streams[partition]?.incoming.payloads.named ?? [:]
    }
    bench.run(until: { !named().isEmpty })
    #expect(named() == [payload.hash: UInt64(payload.bytes.count)])
    bench.holdWire { flood() }
    #expect(try !shares.contains { $0.isWhole })
    bench.run()
    for _ in 0..<4 { bench.advance(100) }
    #expect(isOpen(honest))
    #expect(try bench.nodes[1].shown(room, "large") != nil)
  }

  @Test("what waited whole and is not as it came is asked for again, and breaks no rule", arguments: [false, true])
  func rotten(isOfItsSender: Bool) throws {
    let node = bench.nodes[1]
    if isOfItsSender {
      let honest = bench.connect(1, 0)
      bench.run(until: { (try? node.count("staged_pieces")) ?? 0 > 0 })
      node.engine.turn(pieces(of: payload).map { bench.event(MessageCodec.encode(.payloadPiece($0)), honest, 1) })
      bench.dropWire()
      bench.cut(honest)
    } else {
      send(pieces(of: payload))
    }
    bench.cut(session)
    #expect(try shares.map(\.isWhole) == [true])
    try node.store.store.database.execute("UPDATE staged_pieces SET bytes=zeroblob(length(bytes)) WHERE start=0")
    let honest = bench.meet(1, 0)
    #expect(isOpen(honest) && node.engine.conduct.isEmpty && node.engine.storeFailure == nil)
    #expect(try node.shown(room, "large") != nil && node.shown(room, "large") == bench.nodes[0].shown(room, "large"))
    #expect(try shares.isEmpty)
  }

  @Test(
    "what rotted in the midst, while it waited for the rest, is asked for again, and whoever sends the rest breaks no rule"
  )
  func rottenInTheMidst() throws {
    let node = bench.nodes[1]
    let before = bench.connect(1, 0)
    bench.run(until: { (try? node.count("staged_pieces")) ?? 0 >= 3 })
    bench.dropWire()
    for session in [before, session] { bench.cut(session) }
    #expect(try shares.map(\.isWhole) == [false])
    try node.store.store.database.execute("UPDATE staged_pieces SET bytes=zeroblob(length(bytes)) WHERE start=0")
    let honest = bench.meet(1, 0)
    #expect(isOpen(honest) && node.engine.conduct.isEmpty && node.engine.storeFailure == nil)
    #expect(try node.shown(room, "large") != nil && node.shown(room, "large") == bench.nodes[0].shown(room, "large"))
    #expect(try shares.isEmpty)
  }

  @Test("where the disk spoils each time what waits whole, the session ends, and a later one brings the payload")
  func everRotten() throws {
    let node = bench.nodes[1]
    bench.cut(session)
    try node.store.store.database.execute(
      """
      CREATE TEMP TRIGGER spoil AFTER INSERT ON staged_pieces WHEN NEW.start > 600000
      BEGIN UPDATE staged_pieces SET bytes=zeroblob(length(bytes)) WHERE id=NEW.id; END
      """)
    bench.nodes[0].trace.clear()
    let honest = bench.meet(1, 0)
    #expect(!isOpen(honest) && node.engine.conduct.isEmpty && node.engine.storeFailure == nil)
    let sent = bench.nodes[0].trace.entries.count { if case .sent(_, "payloadPiece") = $0 { true } else { false } }
    #expect(try sent == 22 && shares.isEmpty && node.shown(room, "large") == nil)
    try node.store.store.database.execute("DROP TRIGGER spoil")
    #expect(isOpen(bench.meet(1, 0)))
    #expect(try node.shown(room, "large") != nil)
  }

  @Test("a pull names what is here from that device, or whole; of that partition alone")
  func named() throws {
    let (partition, other) = (PartitionID(payload.hash), PartitionID(.zero))
    let (near, far) = (DeviceID(payload.hash), DeviceID(.zero))
    func share(_ device: DeviceID, _ partition: PartitionID, _ hash: UInt64, isWhole: Bool = false) -> StagedShare {
      let key = StagedKey(device: device, partition: partition, hash: Digest(words: (hash, 0, 0, 0)))
      return StagedShare(key, total: 20_000, byteCount: isWhole ? 20_000 : 16_384, isWhole: isWhole)
    }
    let staged = StagedPayloads([
      share(near, partition, 1), share(far, partition, 2), share(far, partition, 3, isWhole: true),
      share(near, other, 4), share(near, other, 5, isWhole: true),
    ])
    func named(ownAlone: Bool) -> [UInt64] {
      staged.named(in: partition, to: near, ownAlone: ownAlone).map(\.hash.words.0)
    }
    #expect(named(ownAlone: false) == [1, 3])
    #expect(named(ownAlone: true) == [1])
    #expect(staged.named(in: partition, to: near, ownAlone: false).map(\.byteCount) == [16_384, 20_000])
  }

  @Test("a payload is whole where one device has sent all of it, whoever else has begun it", arguments: [0, 1])
  func wholeBesideABeginning(beginner: Int) {
    func share(_ device: Int, isWhole: Bool) -> StagedShare {
      let key = StagedKey(
        device: DeviceID(Digest(words: (UInt64(device), 0, 0, 0))), partition: PartitionID(.zero), hash: payload.hash)
      return StagedShare(key, total: 20_000, byteCount: isWhole ? 20_000 : 16_384, isWhole: isWhole)
    }
    let (begun, whole) = (share(beginner, isWhole: false), share(1 - beginner, isWhole: true))
    #expect(StagedPayloads([begun]).whole(payload.hash, in: PartitionID(.zero)) == nil)
    #expect(StagedPayloads([begun, whole]).whole(payload.hash, in: PartitionID(.zero)) == whole.key)
  }

  @Test("where all devices have too much, whoever has most makes room, and never the share that grows")
  func allBound() {
    func key(_ device: UInt64, _ hash: UInt64) -> StagedKey {
      StagedKey(
        device: DeviceID(Digest(words: (device, 0, 0, 0))), partition: PartitionID(.zero),
        hash: Digest(words: (hash, 0, 0, 0)))
    }
    let each: UInt64 = 4 * 1024 * 1024
    // 63 devices with one, and one with two.
    var staged = StagedPayloads((1...63).map { StagedShare(key($0, 1), total: each, byteCount: each) })
    staged.put(StagedShare(key(7, 2), total: each, byteCount: each))
    #expect(staged.displaced(by: 1, for: key(9, 1)) == [key(7, 1), key(7, 2)])
    #expect(staged.displaced(by: 1, for: key(7, 1)) == [key(7, 2)])
  }
}
