/// One step of the file format: SQL that leads from the version before to `version`.
package struct Migration: Sendable {
  package let version: Int
  package let sql: String

  package init(version: Int, sql: String) { (self.version, self.sql) = (version, sql) }

  /// All steps, ascending. The last one is the format this program writes; what is older than the first is refused.
  package static let all: [Migration] = [.first, .holdings, .sums, .references]
}

enum FileFormat {
  /// `application_id` in the file's header: "SeaM".
  static let applicationID: Int64 = 0x5365_614d

  /// Brings the file to the last of `migrations`, in one transaction. Answers the version it had, 0 for an empty file.
  static func migrate(_ database: Database, _ migrations: [Migration]) throws(StoreError) {
    let version = try check(database, migrations)
    let missing = migrations.filter { $0.version > version }
    guard let target = missing.last?.version else { return }
    try database.execute("BEGIN IMMEDIATE")
    do {
      for step in missing { try database.execute(step.sql) }
      try database.execute("PRAGMA application_id = \(applicationID); PRAGMA user_version = \(target)")
      try database.execute("COMMIT")
    } catch {
      if database.isInTransaction { try? database.execute("ROLLBACK") }
      throw error
    }
  }

  /// The file's version. Refuses what another program or a newer version of this one wrote, and what no step leads on from.
  @discardableResult
  static func check(_ database: Database, _ migrations: [Migration]) throws(StoreError) -> Int {
    let version = Int(try database.integer("PRAGMA user_version") ?? 0)
    let application = try database.integer("PRAGMA application_id") ?? 0
    guard application == applicationID else {
      let tables = try database.integer("SELECT count(*) FROM sqlite_schema") ?? 0
      guard application == 0, version == 0, tables == 0 else { throw .notAStore(path: database.path) }
      return 0
    }
    let (oldest, known) = (migrations.first?.version ?? 0, migrations.last?.version ?? 0)
    guard version >= oldest else { throw .olderVersion(found: version, oldest: oldest, path: database.path) }
    guard version <= known else { throw .newerVersion(found: version, known: known, path: database.path) }
    return version
  }
}
