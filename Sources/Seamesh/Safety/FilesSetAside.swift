import Glibc
import Kernel

/// What lies in a data directory beside its store and would go with it. Nobody has looked whether others have it.
struct FilesSetAside {
  /// Paths of stores from before a restore, each without its log unless that is all that is left of it.
  let stores: [String]
  /// Paths of files of records that could not be imported.
  let records: [String]

  var paths: [String] { stores + records }

  /// Fails where the directory cannot be read. Empty files are none.
  init(_ directory: String) throws {
    let names = try DirectoryNames.of(directory).sorted().filter { FilesSetAside.hasContent("\(directory)/\($0)") }
    let stores = names.filter { $0.hasPrefix(NodeSetup.setAsidePrefix) && !$0.hasSuffix("-shm") }
    let whole = Set(stores)
    self.stores = stores.filter { !$0.hasSuffix("-wal") || !whole.contains(String($0.dropLast("-wal".count))) }
      .map { "\(directory)/\($0)" }
    records = names.filter { $0.hasPrefix(WipeLimits.asidePrefix) }.map { "\(directory)/\($0)" }
  }

  /// One that cannot be looked at counts.
  private static func hasContent(_ path: String) -> Bool {
    var facts = stat()
    return stat(path, &facts) != 0 || facts.st_size > 0
  }
}

extension Doctor {
  /// Where everything else is well, somebody might take the directory for one that may go.
  static func findings(_ aside: FilesSetAside?) -> [DoctorFinding] {
    guard let aside else { return [] }
    var findings = aside.stores.map { path in
      DoctorFinding(
        .warning, "store-set-aside",
        "\(path) is the store from before a restore. It is not checked: what is there alone would be lost with this directory.",
        remedy: "Delete it when nothing of it is missed, with the file beside it that ends in -wal.")
    }
    if !aside.records.isEmpty {
      findings.append(
        DoctorFinding(
          .warning, "records-set-aside",
          "Records that could not be imported lie in \(LevelSentences.list(aside.records)): they would be lost with this directory.",
          remedy: "Mend them there, import that file, and delete it."))
    }
    return findings
  }
}
