import Kernel
import Seamesh
import Synchronization

/// Carries chunks from a producer's thread to a connection's, a bounded number at a time.
///
final class ChunkPipe: Sendable {
  enum End: Sendable {
    case complete
    /// With the error, unless it was the reader who left.
    case broken(NodeError?)
  }

  private struct State: Sendable {
    var chunks: [[UInt8]] = []
    var end: End?
    var isClosed = false
  }

  private let state = Mutex(State())
  private let free = TimedSemaphore()
  private let filled = TimedSemaphore()

  init() { for _ in 0..<ServerLimit.pipeChunks { free.signal() } }

  /// False once the reader is gone, or has read nothing for ``ServerLimit/idleSeconds``.
  func write(_ chunk: [UInt8]) -> Bool {
    guard !state.withLock({ $0.isClosed }) else { return false }
    guard free.wait(milliseconds: UInt64(ServerLimit.idleSeconds) * 1_000) else { return false }
    let isOpen = state.withLock { state in
      if !state.isClosed { state.chunks.append(chunk) }
      return !state.isClosed
    }
    filled.signal()
    return isOpen
  }

  /// The producer's last word.
  func finish(_ end: End) {
    state.withLock { $0.end = end }
    filled.signal()
  }

  func next(milliseconds: Int) -> StreamChunk {
    guard filled.wait(milliseconds: UInt64(max(0, milliseconds))) else { return .waiting }
    let chunk: StreamChunk = state.withLock { state in
      if !state.chunks.isEmpty { return .bytes(state.chunks.removeFirst()) }
      return switch state.end {
      case .complete: .end
      case .broken: .broken
      case nil: .waiting
      }
    }
    if case .bytes = chunk { free.signal() }
    return chunk
  }

  /// What broke the stream.
  var failure: NodeError? {
    state.withLock { if case .broken(let error)? = $0.end { error } else { nil } }
  }

  /// The reader's: a producer that waits is let go.
  func close() {
    state.withLock { $0.isClosed = true }
    free.signal()
  }
}

/// Collects lines into chunks of a fair size.
struct LineBuffer {
  private var bytes: [UInt8] = []
  private let pipe: ChunkPipe

  init(_ pipe: ChunkPipe) { self.pipe = pipe }

  mutating func append(_ line: [UInt8], flush: Bool = false) -> Bool {
    bytes += line
    bytes.append(UInt8(ascii: "\n"))
    return bytes.count >= ServerLimit.pipeChunkBytes || flush ? self.flush() : true
  }

  mutating func flush() -> Bool {
    guard !bytes.isEmpty else { return true }
    defer { bytes = [] }
    return pipe.write(bytes)
  }
}

/// Lines that a producer makes on a thread of its own while they are sent.
final class PipedStream: ResponseStream {
  private let pipe: ChunkPipe
  private let supervisor: StreamSupervisor
  private let socket: Int32
  private var first: StreamChunk?

  init(_ pipe: ChunkPipe, socket: Int32, supervisor: StreamSupervisor) {
    (self.pipe, self.socket, self.supervisor) = (pipe, socket, supervisor)
  }

  /// Waits for the first chunk, as long as the status of the answer can still be chosen.
  func begin() throws(NodeError) {
    while true {
      let chunk = next()
      if case .waiting = chunk { continue }
      if case .broken = chunk {
        close()
        throw pipe.failure ?? NodeError(.stopping, "the node is stopping")
      }
      first = chunk
      return
    }
  }

  func next() -> StreamChunk {
    if let chunk = first {
      if case .bytes = chunk { first = nil }
      return chunk
    }
    let chunk = pipe.next(milliseconds: ServerLimit.streamPollMilliseconds)
    if case .waiting = chunk, supervisor.isStopping || hasHungUp(socket) { return .broken }
    return chunk
  }

  func close() { pipe.close() }
}
