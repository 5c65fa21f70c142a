/// When to look for own writes that lie on branches which lost: they were acknowledged, so they are issued again.
struct ReissueSchedule {
  /// A fork, or statements that may allow writing, came since the last look; or one could not be written yet.
  private var isDue = true
  /// One failed to be written; it is tried again once another commit has gone well.
  private(set) var hasFailed = false

  mutating func noteCause() { isDue = true }
  mutating func noteFailure() { hasFailed = true }
  mutating func noteCommit() { if hasFailed { (isDue, hasFailed) = (true, false) } }

  /// Whether it is time for a look.
  mutating func take() -> Bool {
    defer { isDue = false }
    return isDue
  }
}
