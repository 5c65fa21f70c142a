import Forwarding
import Identity
import Replication
import Seamesh
import Storage
import Wire

/// Where a ledger is read from, for the verbs that do.
let ledgerDumpOption = OptionSpecification(
  "dump", .file("FILE"), "a ledger in a plain dump: pg_dump --schema=seamesh; - is standard input")

/// What a ledger's bytes are judged with: everything but a key to sign.
func ledgerCryptography(_ fleet: FleetID) -> Cryptography {
  Cryptography(
    hash: SHA256.hash, verify: Ed25519.verify, sign: { _ in Signature(first: .zero, second: .zero) },
    authenticationCode: HMAC.sha256, statement: StatementVerifier(fleet: fleet).read,
    holdingsBytes: HoldingsCodec.signedBytes)
}

func ledgerInDump(
  _ path: String, tables: [LedgerTable] = LedgerTable.allCases, _ context: Context
) throws(Failure) -> any LedgerTables {
  let file = try InputFile(path)
  let bar = ProgressBar("reading", on: context.terminal)
  defer { bar.finish() }
  return try judging { () throws -> any LedgerTables in
    try LedgerDump(file.name, tables: tables) { _ in
      try file.next()
    } progress: {
      bar.update(done: $0, total: file.byteCount, unit: "bytes")
    }
  }
}

func ledgerAtServer(_ address: PostgreSQLAddress) throws(Failure) -> any LedgerTables {
  try judging { try PostgreSQLLedgerTables(address, environment: environment()) }
}

/// Whatever reading a ledger throws, as one sentence.
func judging<Answer>(_ work: () throws -> Answer) throws(Failure) -> Answer {
  do {
    return try work()
  } catch let failure as Failure {
    throw failure
  } catch let problem as BackendProblem {
    throw Failure(problem)
  } catch let finding as LedgerFinding {
    throw Failure(.failed, "the ledger does not hold. \(finding)")
  } catch let error as NodeError {
    throw Failure(error)
  } catch {
    throw Failure(.failed, words(of: error))
  }
}
