/// Who may do what at a ledger: roles of the server, each with the least that it needs.
package struct PostgreSQLGrants: Sendable {
  /// May forward.
  package var relay: String?
  /// May forward and bring edits home.
  package var homeBound: String?
  /// May read all documents, and edit them.
  package var office: String?
  /// May read the ledger, to verify it or to fill a node from it.
  package var auditor: String?

  package init(
    relay: String? = nil, homeBound: String? = nil, office: String? = nil, auditor: String? = nil
  ) {
    (self.relay, self.homeBound, self.office, self.auditor) = (relay, homeBound, office, auditor)
  }

  /// Statements of its owner; twice is as good as once.
  func script(through format: Int) -> String {
    var lines: [String] = []
    for role in [relay, homeBound].compactMap({ $0 }) {
      lines.append("GRANT USAGE ON SCHEMA seamesh TO \(quoted(role));")
      lines += functions(PostgreSQLSchema.functions(of: format), to: role)
    }
    if let homeBound { lines += functions(PostgreSQLSchema.homeBoundFunctions(of: format), to: homeBound) }
    if let office {
      lines += [
        "GRANT USAGE ON SCHEMA seamesh_office TO \(quoted(office));",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON seamesh_office.documents TO \(quoted(office));",
        "GRANT SELECT ON seamesh_office.edits, seamesh_office.conflicts TO \(quoted(office));",
      ]
      let functions = format < PostgreSQLSchema.step8.number ? ["edit"] : ["edit", "change"]
      lines += functions.map { "GRANT EXECUTE ON FUNCTION seamesh_office.\($0) TO \(quoted(office));" }
    }
    if let auditor {
      let names = LedgerTable.allCases.filter { $0.since <= format }.map(\.rawValue)
      let tables = (["migrations"] + names).map { "seamesh.\($0)" }
      lines += [
        "GRANT USAGE ON SCHEMA seamesh TO \(quoted(auditor));",
        "GRANT SELECT ON \(tables.joined(separator: ", ")) TO \(quoted(auditor));",
      ]
    }
    return lines.joined(separator: "\n")
  }

  private func functions(_ names: [String], to role: String) -> [String] {
    names.map { "GRANT EXECUTE ON FUNCTION seamesh.\($0) TO \(quoted(role));" }
  }

  private func quoted(_ role: String) -> String { "\"" + role.replacing("\"", with: "\"\"") + "\"" }
}

extension LedgerTable {
  /// The format that brought it.
  fileprivate var since: Int {
    switch self {
    case .ledger, .partitions, .statements, .runs, .changes, .payloads, .forks, .accepted: 1
    case .documents, .documentPositions: 2
    case .documentSteps: PostgreSQLSchema.documentNewsStep.number
    }
  }
}
