import Replication
import Testing

@testable import Engine

@Suite struct HeldFramesTests {
  private let id = SessionID(rawValue: 1)

  /// Where the frames lie in memory: another place means that all of them were copied there.
  private func place(_ held: HeldFrames?) -> UnsafePointer<[UInt8]>? {
    held?.frames.withUnsafeBufferPointer(\.baseAddress)
  }

  private func table() -> LinkTable {
    var table = LinkTable()
    table[id] = LinkTable.Link(remote: SocketAddress(.ipv4(0x7f00_0001), port: 1), dialled: nil, .everything)
    return table
  }

  @Test("small frames are held up to a number of them; the next one cuts the peer off and frees them all")
  func frameBound() {
    var held = HeldFrames()
    for _ in 0..<HeldFrames.frameLimit { #expect(held.hold([18, 1, 1]) == .held) }
    #expect(held.byteCount == HeldFrames.frameLimit * (3 + HeldFrames.frameOverheadByteCount))
    #expect(held.hold([1]) == .cutOff)
    #expect(held.isEmpty && held.byteCount == 0 && held.frames.capacity == 0)
    #expect(held.hold([1]) == .dropped)
  }

  @Test("large frames are held up to their bytes, each with its overhead")
  func byteBound() {
    var held = HeldFrames()
    let frame = [UInt8](repeating: 1, count: 1024 * 1024 - HeldFrames.frameOverheadByteCount)
    for _ in 0..<8 { #expect(held.hold(frame) == .held) }
    #expect(held.byteCount == HeldFrames.byteLimit)
    #expect(held.hold([1]) == .cutOff)
  }

  @Test("a million frames that pass through a long queue move it a few times only, also while a link is looked at")
  func linear() throws {
    var table = table()
    var moves = 0
    var before = place(table.held[id])
    var (handedOver, refusals) = (0, 0)
    for number in 0..<1_000_000 {
      // Whoever looks at a link holds a copy of it, as the engine does when it sends.
      let link = table[id]
      if table.hold([UInt8(truncatingIfNeeded: number)], for: id) != .held { refusals += 1 }
      withExtendedLifetime(link) {}
      if number >= 50_000 {
        var isRoom = true
        _ = table.releaseHeld(for: id) { frame in
          guard isRoom else { return .full }
          isRoom = false
          if frame == [UInt8(truncatingIfNeeded: handedOver)] { handedOver += 1 }
          return .queued(isLong: false)
        }
      }
      let now = place(table.held[id])
      if now != before { moves += 1 }
      before = now
    }
    #expect(refusals == 0)
    #expect(handedOver == 950_000)
    #expect(table.held[id]?.frameCount == 50_000)
    // Doublings on the way to 100,000 places, and nothing afterwards.
    #expect(moves < 40)
  }

  @Test("what is held leaves in order, as far as there is room, and then nothing waits any more")
  func order() throws {
    var table = table()
    for number in 0..<10 as Range<UInt8> { #expect(table.hold([number], for: id) == .held) }
    var sent: [UInt8] = []
    func send(_ frame: [UInt8], room: Int) -> LinkSending {
      guard sent.count < room else { return .full }
      sent += frame
      return .queued(isLong: false)
    }
    let isEmptied = table.releaseHeld(for: id) { send($0, room: 4) }
    #expect(!isEmptied)
    #expect(table.mustHold(for: id))
    let isEmptiedNow = table.releaseHeld(for: id) { send($0, room: 10) }
    #expect(isEmptiedNow)
    #expect(sent == Array(0..<10))
    #expect(!table.mustHold(for: id))
  }

  @Test("what waited for a link goes with it")
  func closing() throws {
    var table = table()
    #expect(table.hold([1], for: id) == .held)
    table[id] = nil
    #expect(table.held.isEmpty)
  }

  @Test("of many pings that could not be answered the last one is; answers beyond the limit pause the reading, once")
  func answers() {
    var unread = UnreadAnswers()
    for nonce in 1...5 as ClosedRange<UInt64> { unread.delayAnswer(to: nonce) }
    let answered = [unread.takePing(), unread.takePing()]
    #expect(answered == [5, nil])
    let pauses = [unread.add(UnreadAnswers.limit - 1), unread.add(1), unread.add(1)]
    #expect(pauses == [false, true, false])
    let resumptions = [unread.renew(), unread.renew()]
    #expect(resumptions == [true, false])
    let pausesAgain = unread.add(UnreadAnswers.limit - 1)
    #expect(!pausesAgain)
  }
}
