import Engine
import Replication

/// What is folded takes no time.
final class StandingClock: EngineClock {
  let now = MonotonicTime(milliseconds: 1_000)
  let wallMilliseconds: Int64 = 0
}
