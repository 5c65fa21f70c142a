import Kernel
import Synchronization

/// Turns of large results of queries: so many at once are made or still written to somebody who reads slowly. Whoever waits
/// for one holds little, so that those who have one need nothing of what others hold.
final class ResultTurns: Sendable {
  private let free = TimedSemaphore()
  private let patienceMilliseconds: UInt64
  fileprivate let smallBytes: Int

  init(_ limits: ReadLimits) {
    smallBytes = limits.smallResultBytes
    patienceMilliseconds = limits.turnMilliseconds
    for _ in 0..<max(1, limits.largeResults) { free.signal() }
  }

  /// For one result, until nobody has it any more.
  func share() -> ResultShare { ResultShare(of: self) }

  fileprivate func take() throws(NodeError) {
    guard free.wait(milliseconds: patienceMilliseconds) else {
      throw NodeError(
        .busy,
        "others ask for large results at the same time: ask again in a moment, or for less with a projection, limit or a "
          + "narrower filter")
    }
  }

  fileprivate func give() { free.signal() }
}

/// What one result holds of ``ResultTurns``.
package final class ResultShare: Sendable {
  private let turns: ResultTurns
  private let hasTurn = Mutex(false)

  fileprivate init(of turns: ResultTurns) { self.turns = turns }

  /// It has a turn.
  var isLarge: Bool { hasTurn.withLock(\.self) }

  /// The result has come to so many bytes. Waits for its turn where that is much, and is refused with `busy` where none comes.
  func grow(to byteCount: Int) throws(NodeError) {
    if byteCount > turns.smallBytes { try takeTurn() }
  }

  func takeTurn() throws(NodeError) {
    try hasTurn.withLock { hasTurn throws(NodeError) in
      guard !hasTurn else { return }
      try turns.take()
      hasTurn = true
    }
  }

  deinit { if hasTurn.withLock(\.self) { turns.give() } }
}

/// What all live results together may hold. Nobody waits for a part of it: they may last for days.
final class LiveMemory: Sendable {
  private let limit: Int
  private let held = Mutex(0)

  init(limit: Int) { self.limit = limit }

  func part() -> LivePart { LivePart(of: self) }

  fileprivate func change(by byteCount: Int) throws(NodeError) {
    let isFree = held.withLock { held in
      guard byteCount <= limit - held else { return false }
      held += byteCount
      return true
    }
    guard isFree else {
      throw NodeError(
        .busy,
        "the live results of this node hold all the \(limit) bytes of memory that there are for them: close one first, or "
          + "ask for less with a projection, limit or a narrower filter", limit: .init(limit, "bytes"))
    }
  }

  fileprivate func give(_ byteCount: Int) { held.withLock { $0 -= byteCount } }
}

/// What one live result holds of ``LiveMemory``.
final class LivePart: Sendable {
  private let memory: LiveMemory
  private let held = Mutex(0)

  fileprivate init(of memory: LiveMemory) { self.memory = memory }

  /// Holds so much; refused with `busy` where others hold the rest.
  func hold(_ byteCount: Int) throws(NodeError) {
    try held.withLock { held throws(NodeError) in
      try memory.change(by: byteCount - held)
      held = byteCount
    }
  }

  deinit { memory.give(held.withLock(\.self)) }
}
