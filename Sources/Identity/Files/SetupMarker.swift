import Replication

/// Stands in a directory from before the first file of a set-up until after the last: tells what an interrupted set-up has
/// made from what somebody put there.
package struct SetupMarker: Hashable, Sendable {
  package enum Purpose: String, Sendable {
    /// A new fleet.
    case found = "init"
    /// Entering an existing one.
    case join
  }

  package let purpose: Purpose
  package let fleet: FleetID
  /// Whose key the set-up made: a `device.key` of another device is not its work.
  package let device: DeviceID
  /// When, in letters that a file name takes.
  package let begun: String

  package static let fileName = "setup.partial"

  package init(_ purpose: Purpose, fleet: FleetID, device: DeviceID, begun: String) {
    (self.purpose, self.fleet, self.device, self.begun) = (purpose, fleet, device, begun)
  }
}

extension SetupMarker {
  package enum Loaded: Equatable, Sendable {
    case absent
    /// It cannot say what the set-up made.
    case unreadable
    case present(SetupMarker)
  }

  private static let title = "Seamesh set-up under way, version 1"
  private static let remarks = [
    "Written by seamesh init, join or run before the first file of a node, and removed after the last.",
    "While it is here the set-up is not finished: run seamesh join or seamesh init again.",
  ]

  package static func load(from directory: DataDirectory) -> Loaded {
    do throws(FileError) {
      let content = try PrivateFile.content(of: directory.file(fileName))
      return (try? SetupMarker(FieldFile.parse(content, title: title))).map { .present($0) } ?? .unreadable
    } catch {
      if case .missing = error { return .absent }
      return .unreadable
    }
  }

  /// In place of one that an earlier set-up left. Durable once it returns.
  package func save(to directory: DataDirectory) throws(FileError) {
    let fields = [
      ("purpose", purpose.rawValue), ("fleet", fleet.text), ("device", device.text), ("begun", begun),
    ]
    let file = FieldFile(title: SetupMarker.title, remarks: SetupMarker.remarks, fields: fields)
    try PrivateFile.replace(directory.file(SetupMarker.fileName), Array(file.text.utf8))
  }

  private init(_ file: FieldFile) throws(FieldFile.Invalid) {
    purpose = try file.value("purpose", Purpose.init(rawValue:))
    fleet = try file.value("fleet", FleetID.init(text:))
    device = try file.value("device", DeviceID.init(text:))
    // It becomes a part of a file's name.
    begun = try file.value("begun") { $0.utf8.allSatisfy(isLetterOrDigit) && !$0.isEmpty ? $0 : nil }
  }
}

private func isLetterOrDigit(_ byte: UInt8) -> Bool {
  (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
}
