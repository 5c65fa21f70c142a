import Synchronization

/// What becomes of a query's result. Nothing piles up: who asks late gets what has become of it since, in fewer steps.
public struct DocumentEvents: AsyncSequence, Sendable {
  public enum Element: Sendable, Equatable {
    case snapshot([Document])
    case insert(Document)
    case update(Document)
    case delete(Document.ID)
  }

  private let subscription: any LiveSubscription

  init(_ subscription: any LiveSubscription) { self.subscription = subscription }

  public func makeAsyncIterator() -> Iterator { Iterator(subscription: subscription) }

  public struct Iterator: AsyncIteratorProtocol {
    let subscription: any LiveSubscription

    /// Nil once the task is cancelled. While nothing comes, no thread waits.
    public mutating func next() async throws(NodeError) -> Element? {
      let subscription = subscription
      while !Task.isCancelled {
        let event = try await Blocking.run { () throws(NodeError) in try subscription.next(timeoutMilliseconds: 0) }
        if let event { return Element(event) }
        await subscription.news()
      }
      subscription.cancel()
      return nil
    }
  }
}

/// A live result whose reader can leave its thread to others meanwhile.
protocol LiveSubscription: WatchSubscription {
  /// Calls `body` once, as soon as ``next(timeoutMilliseconds:)`` may have something to tell.
  func atNews(_ body: @escaping @Sendable () -> Void)
}

extension LiveSubscription {
  /// Until there may be something to tell, or the task is cancelled.
  fileprivate func news() async {
    let turn = Turn()
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        turn.begin(continuation)
        atNews(turn.end)
      }
    } onCancel: {
      turn.end()
    }
  }
}

/// One wait, which two may end.
private final class Turn: Sendable {
  private enum Phase {
    case fresh
    case waiting(CheckedContinuation<Void, Never>)
    case over
  }

  private let phase = Mutex(Phase.fresh)

  func begin(_ continuation: CheckedContinuation<Void, Never>) {
    let isOver = phase.withLock { phase in
      if case .over = phase { return true }
      phase = .waiting(continuation)
      return false
    }
    if isOver { continuation.resume() }
  }

  func end() {
    let last = phase.withLock { phase in
      defer { phase = .over }
      return phase
    }
    if case .waiting(let continuation) = last { continuation.resume() }
  }
}

extension DocumentEvents.Element {
  init(_ event: WatchEvent) {
    self =
      switch event {
      case .snapshot(let documents, _): .snapshot(documents.map(Document.init))
      case .insert(let document, _, _): .insert(Document(document))
      case .update(let document, _, _, _): .update(Document(document))
      case .delete(let id, _, _): .delete(Document.ID(id))
      }
  }
}
