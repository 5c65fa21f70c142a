import Dispatch
import Storage
import Synchronization

/// Looks up in the log when a run came, for whoever asks how a forwarder does. He waits for nobody's turn at the disk, and for the
/// disk itself a moment at the most: it may be that which he wants to know about. What is found later is shown to whoever asks
/// next.
final class ArrivalLookUp: Sendable {
  /// Who watches a node wants an answer within 50 ms.
  static let patienceMilliseconds = 40

  private let source: any ForwardingSource
  private let isUnderWay = Mutex(false)

  init(_ source: any ForwardingSource) { self.source = source }

  /// Hands `keep` the time at which the first run behind `arrival` came, in milliseconds since 1970: before this returns, or
  /// later. One look at a time: while a disk hangs, who asks in vain makes no more of them.
  func first(behind arrival: Int64, keep: @escaping @Sendable (Int64) -> Void) {
    let isFirst = isUnderWay.withLock { isUnderWay in
      defer { isUnderWay = true }
      return !isUnderWay
    }
    guard isFirst else { return }
    let done = DispatchSemaphore(value: 0)
    DispatchQueue.global(qos: .userInitiated).async { [self] in
      let found = try? source.readIfFree({ try $0.firstArrived(after: arrival) })
      if let first = found ?? nil { keep(first) }
      isUnderWay.withLock { $0 = false }
      done.signal()
    }
    _ = done.wait(timeout: .now() + .milliseconds(ArrivalLookUp.patienceMilliseconds))
  }
}
