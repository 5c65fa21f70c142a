import Dispatch
import Replication
import Synchronization

/// Reads the page behind a batch while that is on its way to the backend: a processor of each side works then, where one waited
/// for the other.
///
/// `@unchecked Sendable`: what it reads with is used by nobody else until ``page()`` has answered.
final class ReadingAhead: @unchecked Sendable {
  let request: Forwarder.LoadRequest
  private let read: (Forwarder.LoadRequest) throws -> Forwarder.Page
  private let found = Mutex<Forwarder.Page?>(nil)
  private let done = DispatchSemaphore(value: 0)

  init(_ request: Forwarder.LoadRequest, _ read: @escaping (Forwarder.LoadRequest) throws -> Forwarder.Page) {
    (self.request, self.read) = (request, read)
    DispatchQueue.global(qos: .userInitiated).async { [self] in
      // What fails is read again by whoever needs it, who hears why.
      let page = try? self.read(request)
      found.withLock { $0 = page }
      done.signal()
    }
  }

  /// Waits until it is read; nil where it could not be. To be called once.
  func page() -> Forwarder.Page? {
    done.wait()
    return found.withLock { $0 }
  }
}

extension Forwarder {
  /// What will be read next, once the batch that is on its way is in: in a backlog alone, where something is left for sure.
  package func nextLoad(now: MonotonicTime, random: inout some RandomNumberGenerator) -> LoadRequest? {
    guard case .committing(let page) = phase, !page.isEnd || page.hasMoreDocuments else { return nil }
    var next = self
    guard case .load(let request)? = next.handle(.committed(AppendOutcome()), now: now, random: &random).first else {
      return nil
    }
    return request
  }
}
