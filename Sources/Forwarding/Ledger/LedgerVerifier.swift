import Engine
import Replication
import Storage
import Wire

/// What a verified ledger holds.
package struct LedgerTally: Equatable, Sendable {
  package var fleet = FleetID(.zero)
  package var statements = 0
  /// Beyond what one device may say: they hold, and no node counts them.
  package var statementsLeftOut = 0
  package var partitions = 0
  package var chains = 0
  package var forkedChains = 0
  package var runs = 0
  package var changes = 0
  package var payloads = 0
  package var bytes: Int64 = 0
  /// Chains with a mark that says how far they count.
  package var marks = 0
  /// Runs for which nobody has, or has any more, a right that is known here: kept, and without effect.
  package var runsWithoutRight = 0
  /// Chains that do not begin with their first change, and the first ones of them.
  package var incompleteChains = 0
  package var incomplete: [IncompleteChain] = []
  /// Documents that are as they were written; nil where they could not be looked at.
  package var documents: Int?
  /// Of these, living ones without a body, with a reason in its place: what should be there was refused, or so it says.
  package var deadLetters = 0
  /// What runs make of documents; nil where documents were not made anew.
  package var folding: Folding?

  package struct Folding: Equatable, Sendable {
    /// Runs that were folded.
    package var runs = 0
    /// Documents that relays have not sent yet, or not as they are now.
    package var documentsBehind = 0
    /// Partitions whose runs are not all there, or not to be judged here: their documents were held against their sums alone.
    package var partitionsLeftOut = 0
    /// Runs that came while a relay had more to send: documents that they wrote may differ unseen.
    package var runsInDoubt = 0
    /// A statement came so: any document may.
    package var areAllInDoubt = false
    package var relaysBehind: [RelayBehind] = []
  }

  /// A relay that has brought something since it said last that its documents are all there.
  package struct RelayBehind: Equatable, Sendable {
    /// Its device's id.
    package let relay: [UInt8]
    /// Microseconds since 1970; nil: it never said so.
    package let since: Int64?
  }

  package struct IncompleteChain: Equatable, Sendable {
    package let partition: PartitionName
    package let replica: ReplicaID
    /// What is here begins there.
    package let first: UInt64
  }

  static let incompleteLimit = 16
}

/// Recomputes every hash and signature of a ledger, back to the root of its fleet, and holds the rows that people ask against
/// the bytes that were signed. Who signs nothing cannot be caught: what is missing at the end of a chain, and no mark names,
/// looks like what was never brought.
package struct LedgerVerifier {
  let tables: any LedgerTables
  private let cryptography: (FleetID) -> Cryptography
  private let progress: (LedgerTally, _ runs: Int64) -> Void
  private let isFolding: Bool
  var tally = LedgerTally()

  /// - Parameters:
  ///   - folding: documents are made anew from the runs as well, in a store in a temporary directory.
  ///   - progress: what was found so far, and how many runs there are.
  package init(
    _ tables: any LedgerTables, folding: Bool = true, _ cryptography: @escaping (FleetID) -> Cryptography,
    progress: @escaping (LedgerTally, Int64) -> Void = { _, _ in }
  ) {
    (self.tables, self.cryptography, self.progress, isFolding) = (tables, cryptography, progress, folding)
  }

  /// - Parameter expected: the fleet that it should be; else the ledger is held against the one that it names itself.
  /// - Throws: ``LedgerFinding`` for the first thing that is wrong, ``BackendProblem`` where the ledger cannot be read.
  package mutating func verify(expecting expected: FleetID? = nil) throws -> LedgerTally {
    let fleet = try LedgerStatements.fleet(of: tables)
    if let expected, expected != fleet {
      throw BackendProblem(
        .schema,
        "the ledger in \(tables.name) says that it is of fleet \(hexadecimal(fleet.digest.bytes)), and not of the one that was "
          + "asked for", remedy: "Look at the address, or at --fleet.")
    }
    tally = LedgerTally()
    tally.fleet = fleet
    let statements = try LedgerStatements.verified(tables, fleet, cryptography(fleet))
    (tally.statements, tally.statementsLeftOut) = (statements.count, statements.leftOut)
    try verifyNames(fleet)
    try verifyChains(statements)
    try verifyPayloads()
    if tables.hasDocumentSums { try verifyDocuments(fleet) }
    return tally
  }

  private mutating func verifyNames(_ fleet: FleetID) throws {
    let names = LedgerCursor(tables, .partitions)
    while let row = try names.next() {
      _ = try LedgerVerifier.name(row, fleet, cryptography(fleet).hash)
      tally.partitions += 1
    }
  }

  package static func name(
    _ row: LedgerRow, _ fleet: FleetID, _ hash: HashFunction
  ) throws(LedgerFinding) -> PartitionName {
    guard let text = String(validating: try row.bytes("name"), as: UTF8.self), let name = try? PartitionName(Text(text))
    else { throw row.finding("name is no name of a partition") }
    guard name.id(fleet: fleet, hash: hash).digest == (try row.digest("partition")) else {
      throw row.finding("name is not that of this partition")
    }
    return name
  }

  // MARK: Chains

  private mutating func verifyChains(_ statements: LedgerStatements) throws {
    let total = try tables.count(of: .runs)
    let cryptography = cryptography(statements.fleet)
    var verification = ChainVerification(tables, statements, cryptography)
    var partition: PartitionUnderWay?
    while let prefix = try verification.nextChain() {
      if partition?.id != prefix[0] { partition = try begin(prefix, verification, statements, cryptography) }
      guard let name = partition?.name else { break }
      try verification.verify(prefix, in: name, &tally) { progress($0, total) }
    }
  }

  private struct PartitionUnderWay {
    let id: RowValue
    let name: PartitionName
  }

  private func begin(
    _ prefix: [RowValue], _ verification: ChainVerification, _ statements: LedgerStatements,
    _ cryptography: Cryptography
  ) throws -> PartitionUnderWay {
    guard let row = try tables.row(of: .partitions, [prefix[0]]) else {
      let missing = LedgerFinding(.partitions, [prefix[0]], "its name is not there")
      throw try verification.firstRow(of: prefix)?.finding("its partition has no row in seamesh.partitions") ?? missing
    }
    return PartitionUnderWay(
      id: prefix[0], name: try LedgerVerifier.name(row, statements.fleet, cryptography.hash))
  }

  // MARK: Payloads

  /// Nil where it is not there.
  package static func payload(
    _ hash: Digest, of partition: PartitionID, in tables: any LedgerTables
  ) throws -> [UInt8]? {
    try tables.row(of: .payloads, [.bytes(partition.digest.bytes), .bytes(hash.bytes)])?.bytes("bytes")
  }

  private mutating func verifyDocuments(_ fleet: FleetID) throws {
    let total = try tables.count(of: .runs)
    var documents = DocumentVerification(tables, fleet, cryptography(fleet))
    if isFolding, tables.hasDocumentNotes { try documents.fold() }
    try documents.verify { [tally, progress] folding in
      var told = tally
      told.folding = folding
      progress(told, total)
    }
    (tally.documents, tally.folding) = (documents.count, documents.folding)
    tally.deadLetters = documents.deadLetters
  }

  private mutating func verifyPayloads() throws {
    let payloads = LedgerCursor(tables, .payloads)
    let hash = cryptography(tally.fleet).hash
    while let row = try payloads.next() {
      let bytes = try row.bytes("bytes")
      guard Digest.of(bytes, hash) == (try row.digest("hash")) else { throw row.finding("bytes do not have this hash") }
      tally.payloads += 1
      tally.bytes += Int64(bytes.count)
    }
  }
}
