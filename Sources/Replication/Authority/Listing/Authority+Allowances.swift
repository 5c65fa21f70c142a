/// How much of what one device may say it has said, in the fleet's scope (rule C26).
package struct Allowance: Sendable, Equatable {
  package let device: PublicKey
  package let statements: Int
  package let statementBytes: Int
  /// Statements among them that declare a replica.
  package let replicas: Int

  package static let statementLimit = AdmittedStatements.limit
  package static let byteLimit = AdmittedStatements.byteLimit

  /// Half of either is far more than any device needs.
  package var isNearlySpent: Bool {
    statements * 2 >= Allowance.statementLimit || statementBytes * 2 >= Allowance.byteLimit
  }
}

extension Authority {
  /// What these statements name of devices that have said half of what they may, with all that it goes on from, in order. Who
  /// holds other statements of such a device may have left that out (rule C26), and then nothing leads there to what names it.
  func namedOfTalkers(by statements: [Statement]) -> [Statement] {
    let tips = statements.lazy.flatMap(\.tips).filter { $0.scope.utf8.isEmpty }.flatMap(\.tips)
    let issuers = Set(tips.map(\.issuer).filter { !members.isEverAdmin($0) })
    guard !issuers.isEmpty else { return [] }
    var counts: [PublicKey: Int] = [:]
    for statement in fleetStatements where issuers.contains(statement.issuer) {
      counts[statement.issuer, default: 0] += 1
    }
    var lines: Set<Digest> = []
    for tip in tips where counts[tip.issuer, default: 0] >= limit / 2 {
      var next: Digest? = tip.id
      while let id = next, let named = self[id], lines.insert(id).inserted { next = named.previous }
    }
    lines.subtract(statements.map(\.id))
    return lines.isEmpty ? [] : fleetStatements.filter { lines.contains($0.id) }
  }

  /// Of devices that have said something and are bounded: neither root nor ever admins.
  package var allowances: [Allowance] {
    Dictionary(grouping: fleetStatements.filter { !members.isEverAdmin($0.issuer) }, by: \.issuer).map { device, said in
      Allowance(
        device: device, statements: said.count, statementBytes: said.reduce(0) { $0 + $1.encoded.count },
        replicas: said.count { if case .replica = $0.body { true } else { false } })
    }
    .sorted { $0.device < $1.device }
  }
}
