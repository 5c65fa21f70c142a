import Engine
import Replication
import Storage
import Wire

/// The signed facts of a ledger and what follows from them.
package struct LedgerStatements: Sendable {
  package let fleet: FleetID
  package let authority: Authority
  /// Rows that hold, in or out of the set from which everything follows.
  package let count: Int
  /// Beyond what one device may say: no node counts them.
  package let leftOut: Int
  /// Every device of which any statement makes a member, and the root.
  let devices: Set<DeviceID>

  /// Bytes of all statements, which are in memory together as they are in a node.
  static let byteLimit = 256 * 1024 * 1024

  /// The fleet that the ledger says it belongs to, held against what its own root signed.
  package static func fleet(of tables: any LedgerTables) throws -> FleetID {
    let rows = try tables.page(of: .ledger, after: nil, rows: 2)
    guard let row = rows.first else {
      throw BackendProblem(.schema, "\(tables.name) has no ledger in it", remedy: "Look at the name of the database.")
    }
    guard rows.count == 1 else { throw row.finding("it has more than one row") }
    return FleetID(try row.digest("fleet"))
  }

  /// - Throws: ``LedgerFinding``: of the first statement that does not hold, or that nothing leads to.
  package static func verified(
    _ tables: any LedgerTables, _ fleet: FleetID, _ cryptography: Cryptography
  ) throws -> LedgerStatements {
    var rows: [LedgerRow] = []
    try eachRow(tables) { row in
      if let other = foundedFleet(try row.bytes("encoded"), cryptography.hash), other != fleet {
        throw LedgerFinding(.ledger, [.bytes(fleet.digest.bytes)], "its statements are of another fleet")
      }
      rows.append(row)
    }
    let statements = try rows.map { row in
      guard let statement = cryptography.statement(try row.bytes("encoded")).statement else {
        throw row.finding("encoded is not what its issuer signed")
      }
      guard statement.id == (try row.digest("id")) else { throw row.finding("id is not the hash of what was signed") }
      return statement
    }
    guard let authority = Authority(ofFleet: fleet, statements, cryptography.hash) else {
      throw LedgerFinding(.statements, [], "the fleet's genesis is not there")
    }
    let ids = Set(statements.map(\.id))
    var leftOut = 0
    for (statement, row) in zip(statements, rows) where !authority.holds(statement.id) {
      // What is linked to what is here and yet not in the set is beyond its issuer's allowance.
      guard let previous = statement.previous, ids.contains(previous), authority.speaks(statement.issuer) else {
        throw row.finding("nothing that is in the ledger leads to it: a statement before it is missing")
      }
      leftOut += 1
    }
    return LedgerStatements(fleet, authority, statements, leftOut, cryptography.hash)
  }

  /// Those that hold. Who fills a log from a ledger goes without the rest.
  package static func holding(
    _ tables: any LedgerTables, _ fleet: FleetID, _ cryptography: Cryptography
  ) throws -> [Statement] {
    var statements: [Statement] = []
    try eachRow(tables) { row in
      guard let statement = cryptography.statement(try row.bytes("encoded")).statement, statement.fleet == fleet else {
        return
      }
      statements.append(statement)
    }
    return statements
  }

  private init(
    _ fleet: FleetID, _ authority: Authority, _ statements: [Statement], _ leftOut: Int, _ hash: HashFunction
  ) {
    (self.fleet, self.authority, count, self.leftOut) = (fleet, authority, statements.count, leftOut)
    var keys: Set<PublicKey> = [authority.root]
    for statement in statements {
      switch statement.body {
      case .membership(let membership): keys.insert(membership.device)
      case .unknown(let unknown): if let member = unknown.member { keys.insert(member.device) }
      default: break
      }
    }
    devices = Set(keys.map { DeviceID.derived(from: $0, hash) })
  }

  private static func eachRow(_ tables: any LedgerTables, _ body: (LedgerRow) throws -> Void) throws {
    let cursor = LedgerCursor(tables, .statements)
    var bytes = 0
    while let row = try cursor.next() {
      bytes += try row.bytes("encoded").count
      guard bytes <= byteLimit else {
        throw BackendProblem(
          .rejected, "\(tables.name) has more than \(byteLimit / 1024 / 1024) MiB of statements, which no fleet has")
      }
      try body(row)
    }
  }

  /// Of a genesis, whose issuer is the fleet's root.
  private static func foundedFleet(_ encoded: [UInt8], _ hash: @escaping HashFunction) -> FleetID? {
    guard let statement = try? StatementCodec.decode(encoded[...], hash), case .genesis = statement.body else {
      return nil
    }
    let founded = FleetID(Digest.of(DomainTag.fleet.bytes + statement.issuer.bytes, hash))
    return statement.fleet == founded ? founded : nil
  }
}

extension Authority {
  /// Something that this key signed is in the set.
  fileprivate func speaks(_ issuer: PublicKey) -> Bool {
    fleetStatements.contains { $0.issuer == issuer } || !members(of: issuer).isEmpty
  }
}
