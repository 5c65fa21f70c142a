import Replication
import Wire

/// How people write whom and what a right is for. Whether there is such a device or user is not asked here.
package enum RightsForm {
  package enum Who: Equatable {
    case everyone
    /// A label, or the beginning of a key.
    case device(String)
    case user(Text)
    case role(Text)
  }

  /// `device:LABEL-or-key`, `user:ID`, `role:ROLE`, `everyone`.
  @discardableResult
  package static func who(_ text: String) throws(NodeError) -> Who {
    if text == "everyone" { return .everyone }
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 2, !parts[1].isEmpty, ["device", "user", "role"].contains(parts[0]) else {
      throw NodeError(
        .unprocessable, "\(text) names nobody: write device:LABEL or device:KEY, user:ID, role:ROLE, or everyone")
    }
    guard parts[0] != "device" else { return .device(parts[1]) }
    let name = Text(parts[1])
    try NodeSetup.check(name, "a name", mayBeEmpty: false)
    return parts[0] == "user" ? .user(name) : .role(name)
  }

  @discardableResult
  package static func pattern(_ text: Text) throws(NodeError) -> Text {
    guard Statement.Grant.isPattern(text) else {
      throw NodeError(
        .unprocessable,
        "\(text.string) is no pattern: it is a partition's name of 1 to \(PartitionName.byteLimit) bytes without control "
          + "characters, or the beginning of names with one * at its end")
    }
    return text
  }

  /// Milliseconds since 1970.
  @discardableResult
  package static func moment(_ text: String) throws(NodeError) -> Int64 {
    guard let moment = CalendarTime.milliseconds(Array(text.utf8)) else {
      throw NodeError(
        .unprocessable, "\(text) is no time: write it as 2026-05-31T12:00:00Z or with an offset such as +02:00")
    }
    return moment
  }

  /// Of what was good until then: a time that is yet to come says nothing of what has arrived.
  @discardableResult
  package static func pastMoment(_ text: String) throws(NodeError) -> Int64 {
    let moment = try moment(text)
    guard moment <= WallClock.milliseconds else {
      throw NodeError(
        .unprocessable, "\(text) lies in the future: name a time at which what the device wrote was good")
    }
    return moment
  }
}
