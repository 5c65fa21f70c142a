import Dispatch

/// Keeps waiting for the engine and the disk off the threads of Swift's own pool, which must never block.
enum Blocking {
  private static let queue = DispatchQueue(label: "seamesh.library", attributes: .concurrent)

  static func run<Answer: Sendable>(
    _ body: @escaping @Sendable () throws(NodeError) -> Answer
  ) async throws(NodeError) -> Answer {
    let result: Result<Answer, NodeError> = await withCheckedContinuation { continuation in
      queue.async { continuation.resume(returning: Result(catching: body)) }
    }
    return try result.get()
  }
}
