import Engine
import Replication

extension Doctor {
  static func findings(_ damaged: [DamagedStatus], mended: [String], _ mendedCount: Int) -> [DoctorFinding] {
    var findings: [DoctorFinding] = []
    if !damaged.isEmpty {
      findings.append(
        DoctorFinding(
          .problem, "document-damaged",
          "Documents do not read on this device, nor can its log give them again: "
            + "\(listed(damaged.map { "\(DamagedDocument.text(of: $0.id)) of \($0.collection) in \($0.partition)" }, damaged.count)). "
            + "Everything else goes on.",
          remedy:
            "Write each whole (seamesh put), which replaces it everywhere. Or stop the node, move seamesh.db and "
            + "seamesh.db-wal aside together and start it: everything is fetched anew from the fleet. Check the disk."))
    }
    if mendedCount > 0 {
      findings.append(
        DoctorFinding(
          .warning, "document-mended",
          "Documents did not read and were made anew from the log, with nothing lost: \(listed(mended, mendedCount)).",
          remedy: "Check the disk: what was damaged once may be damaged again."))
    }
    return findings
  }

  static func findings(damagedRuns: Int, mended: Int) -> [DoctorFinding] {
    var findings: [DoctorFinding] = []
    if damagedRuns > 0 {
      findings.append(
        DoctorFinding(
          .problem, "log-damaged",
          counted(
            damagedRuns, "run of this device's log is not as it was written: it is not passed on, and asked of other ",
            "runs of this device's log are not as they were written: they are not passed on, and asked of other ")
            + "devices anew. Everything else goes on.",
          remedy: "Let it meet a device that has what is damaged. Check the disk."))
    }
    if mended > 0 {
      findings.append(
        DoctorFinding(
          .warning, "log-mended",
          counted(mended, "run of the log was not as it was", "runs of the log were not as they were")
            + " written and came anew from other devices, with nothing lost.",
          remedy: "Check the disk: what was damaged once may be damaged again."))
    }
    return findings
  }

  static func findings(unreadLog reason: String?) -> [DoctorFinding] {
    guard let reason else { return [] }
    return [
      DoctorFinding(
        .problem, "log-unread",
        "A part of this device's log could not be read over, and is tried again: \(reason).",
        remedy: "Check the disk. What lies there may be damaged: let the device meet others that have it.")
    ]
  }

  private static let listedLimit = 16

  private static func listed(_ names: [String], _ count: Int) -> String {
    let shown = names.prefix(listedLimit)
    return shown.joined(separator: "; ") + (count > shown.count ? "; and \(count - shown.count) more" : "")
  }
}
