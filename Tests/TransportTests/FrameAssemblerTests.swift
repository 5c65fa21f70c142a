import Testing
import TestSupport

@testable import Transport

@Suite struct FrameAssemblerTests {
  private func assemble(
    _ assembler: inout FrameAssembler, _ bytes: [UInt8], now: Int = 1000, later: Int = 1000
  ) throws -> (frames: [[UInt8]], taken: Int) {
    var frames: [[UInt8]] = []
    let taken = try bytes.withUnsafeBytes { bytes in
      try assembler.consume(bytes, limits: { (now, later) }, deliver: { frames.append($0) })
    }
    return (frames, taken)
  }

  private func wire(_ frame: [UInt8]) -> [UInt8] {
    withUnsafeBytes(of: UInt32(frame.count).bigEndian) { Array($0) } + frame
  }

  @Test("frames come out whole however the stream is cut")
  func anyCut() throws {
    var random = SplitMix64(seed: 7)
    let frames = (0..<200).map { _ in random.bytes(Int.random(in: 1...300, using: &random)) }
    let stream = frames.flatMap(wire)
    var assembler = FrameAssembler()
    var got: [[UInt8]] = []
    var position = 0
    while position < stream.count {
      let end = min(stream.count, position + Int.random(in: 1...97, using: &random))
      got += try assemble(&assembler, Array(stream[position..<end])).frames
      position = end
    }
    #expect(got == frames)
    #expect(assembler.isBetweenFrames)
  }

  @Test(
    "a length above the limit is refused at its fourth byte, before any of the body",
    arguments: [
      1001, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff,
    ])
  func oversize(length: UInt32) throws {
    var assembler = FrameAssembler()
    let header = withUnsafeBytes(of: length.bigEndian) { Array($0) }
    _ = try assemble(&assembler, Array(header.prefix(3)))
    #expect(throws: FrameAssembler.Violation.tooLarge(byteCount: Int(length), limit: 1000)) {
      try assemble(&assembler, [header[3]])
    }
  }

  @Test("an empty frame is refused")
  func empty() {
    var assembler = FrameAssembler()
    #expect(throws: FrameAssembler.Violation.empty) { try assemble(&assembler, [0, 0, 0, 0]) }
  }

  @Test("a frame that is only accepted later waits untouched, and goes on where it stopped")
  func waits() throws {
    var assembler = FrameAssembler()
    let stream = wire([1, 2]) + wire([UInt8](repeating: 9, count: 50))
    let first = try assemble(&assembler, stream, now: 10, later: 100)
    #expect(first.frames == [[1, 2]])
    #expect(first.taken == 6 + 4)
    let rest = try assemble(&assembler, Array(stream[first.taken...]), now: 100, later: 100)
    #expect(rest.frames == [[UInt8](repeating: 9, count: 50)])
    #expect(rest.taken == 50)
  }

  @Test("random bytes never trap and never give a frame above the limit", arguments: 0..<50)
  func garbage(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var assembler = FrameAssembler()
    for _ in 0..<200 {
      var bytes = random.bytes(Int.random(in: 1...64, using: &random))
      if Bool.random(using: &random) {
        bytes.replaceSubrange(0..<1, with: [0, 0, UInt8.random(in: 0...4, using: &random)])
      }
      guard let result = try? assemble(&assembler, bytes) else {
        assembler = FrameAssembler()
        continue
      }
      #expect(result.frames.allSatisfy { !$0.isEmpty && $0.count <= 1000 })
    }
  }
}

@Suite struct SendQueueTests {
  @Test("what is copied and consumed in any pieces is the stream of lengths and bodies")
  func anyPieces() throws {
    var random = SplitMix64(seed: 3)
    var queue = SendQueue()
    var expected: [UInt8] = []
    var written: [UInt8] = []
    for _ in 0..<500 {
      for _ in 0..<Int.random(in: 0...3, using: &random) {
        let frame = random.bytes(Int.random(in: 1...200, using: &random))
        queue.append(frame)
        expected += withUnsafeBytes(of: UInt32(frame.count).bigEndian) { Array($0) } + frame
      }
      var buffer = [UInt8](repeating: 0, count: Int.random(in: 1...333, using: &random))
      let count = buffer.withUnsafeMutableBytes { queue.copyFront(into: $0) }
      #expect(count == min(buffer.count, queue.byteCount))
      let taken = Int.random(in: 0...count, using: &random)
      written += buffer.prefix(taken)
      queue.consume(taken)
      #expect(queue.byteCount == expected.count - written.count)
    }
    #expect(expected.starts(with: written))
    #expect(written.count > 20_000)
  }
}
