import Engine
import Replication

extension Doctor {
  /// Nil where nothing shows that something else ran under this device's key.
  static func finding(_ notes: OwnKeyNotes, at now: MonotonicTime) -> DoctorFinding? {
    if let meeting = notes.meeting {
      return DoctorFinding(
        .problem, "key-used-twice",
        "Another process with this device's key was met at \(meeting.address), \(now.millisecondsSince(meeting.time) / 1_000) s "
          + "ago: a copy of this data directory runs.",
        remedy: ownKeyRemedy)
    }
    guard !notes.forked.isEmpty else { return nil }
    return DoctorFinding(
      .warning, "key-used-twice",
      "Two histories were found of what this device wrote: a copy of its data directory was written to, or an older one "
        + "was put back.",
      remedy: "Where the directory was put back there is nothing to do: what is not there any more is issued again. "
        + "Otherwise: " + ownKeyRemedy)
  }

  private static let ownKeyRemedy =
    "Let both meet another node, so that all they wrote is there; then stop one of the two, and let that machine join by itself, in a "
    + "new directory. They cannot be told apart, or ended one by one, as long as they have one key."
}
