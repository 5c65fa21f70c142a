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
    let tips = statements.lazy.flatMap(\.fleetTips)
    let talkers = talkers(among: Set(tips.map(\.issuer)))
    guard !talkers.isEmpty else { return [] }
    var lines: Set<Digest> = []
    for tip in tips where talkers.contains(tip.issuer) {
      var next: Digest? = tip.id
      while let id = next, let named = self[id], lines.insert(id).inserted { next = named.previous }
    }
    lines.subtract(statements.map(\.id))
    return lines.isEmpty ? [] : fleetStatements.filter { lines.contains($0.id) }
  }

  /// What of these statements root or admins name in others of them, with what it goes on from.
  func namedByAdmins(in list: [Statement]) -> Set<Digest> {
    let tips = list.lazy.filter { wasEverAdmin($0.issuer) }.flatMap(\.fleetTips)
    guard tips.contains(where: { _ in true }) else { return [] }
    let brought = Dictionary(list.map { ($0.id, $0) }) { first, _ in first }
    var named: Set<Digest> = []
    for tip in tips {
      var next: Digest? = tip.id
      while let id = next, let step = brought[id], named.insert(id).inserted { next = step.previous }
    }
    return named
  }

  /// Devices that have said half of what they may, and are bounded.
  package var talkers: Set<PublicKey> { talkers(among: Set(fleetStatements.map(\.issuer))) }

  /// Of these devices those that are bounded and have said half of what they may, in number or in bytes.
  func talkers(among devices: Set<PublicKey>) -> Set<PublicKey> {
    let bounded = devices.filter { !wasEverAdmin($0) }
    guard !bounded.isEmpty else { return [] }
    var said: [PublicKey: (count: Int, bytes: Int)] = [:]
    for statement in fleetStatements where bounded.contains(statement.issuer) {
      said[statement.issuer, default: (0, 0)].count += 1
      said[statement.issuer, default: (0, 0)].bytes += statement.encoded.count
    }
    return Set(said.filter { $1.count >= limit / 2 || $1.bytes >= Allowance.byteLimit / 2 }.keys)
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
