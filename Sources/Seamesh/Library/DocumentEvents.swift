/// What becomes of a query's result. Nothing piles up: who asks late gets what has become of it since, in fewer steps.
public struct DocumentEvents: AsyncSequence, Sendable {
  public enum Element: Sendable, Equatable {
    case snapshot([Document])
    case insert(Document)
    case update(Document)
    case delete(Document.ID)
  }

  private let subscription: any WatchSubscription

  init(_ subscription: any WatchSubscription) { self.subscription = subscription }

  public func makeAsyncIterator() -> Iterator { Iterator(subscription: subscription) }

  public struct Iterator: AsyncIteratorProtocol {
    let subscription: any WatchSubscription
    /// A cancelled task is noticed after this long.
    private static let patienceMilliseconds = 250

    /// Nil once the task is cancelled.
    public mutating func next() async throws(NodeError) -> Element? {
      let subscription = subscription
      while !Task.isCancelled {
        let event = try await Blocking.run { () throws(NodeError) in
          try subscription.next(timeoutMilliseconds: Iterator.patienceMilliseconds)
        }
        if let event { return Element(event) }
      }
      subscription.cancel()
      return nil
    }
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
