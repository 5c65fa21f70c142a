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
