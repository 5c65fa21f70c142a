import Replication
import Storage
import Wire

/// A row of `runs` that reads.
package struct LedgerRun: Sendable {
  let row: LedgerRow
  package let chain: ChainKey
  package let first: UInt64
  package let last: UInt64
  package let hash: Digest
  let hashBefore: Digest
  package let body: [UInt8]
  private let contextBytes: [UInt8]

  init(_ row: LedgerRow) throws(LedgerFinding) {
    self.row = row
    (chain, first, last) = (try row.chain(), try row.number("first"), try row.number("last"))
    (hash, hashBefore) = (try row.digest("hash"), try row.digest("hash_before"))
    (contextBytes, body) = (try row.bytes("context"), try row.bytes("body"))
    guard first > 0, first <= last else { throw row.finding("first is not between 1 and last") }
  }

  /// As it is stored: whole, or as it differs from that of the run before.
  func contextForm() throws(LedgerFinding) -> ContextForm {
    do throws(CBORError) {
      var reader = CBORReader(contextBytes[...])
      let form = try reader.readContext()
      try reader.finish()
      return form
    } catch {
      throw row.finding("context does not read")
    }
  }

  /// Of the run right before it.
  var keyBefore: [RowValue] {
    [row.values[0], row.values[1], .integer(Int64(clamping: first - 1)), .bytes(hashBefore.bytes)]
  }
}

/// Puts contexts together that are stored as they differ from one another. The last ones are remembered; beyond them it looks
/// back to the nearest that is known or whole.
struct ContextResolver {
  private let tables: any LedgerTables
  /// By the chain hash at the end of their runs.
  private var known: [Digest: VersionVector] = [:]
  private var order: [Digest] = []
  private var entries = 0

  /// Entries of the contexts that are remembered, passed by one context at the most.
  static let entryLimit = 262_144

  init(_ tables: any LedgerTables) { self.tables = tables }

  /// What is kept of a run on the way back, which may be that of a whole chain: no body.
  private struct Step {
    let hash: Digest
    let form: ContextForm
    let key: [RowValue]

    init(_ run: LedgerRun) throws(LedgerFinding) {
      (hash, form, key) = (run.hash, try run.contextForm(), run.row.key)
    }
  }

  mutating func context(of run: LedgerRun) throws -> VersionVector {
    var (next, step) = (run, try Step(run))
    var steps = [step]
    var base: VersionVector?
    while case .increments = step.form {
      if let remembered = known[next.hashBefore] {
        base = remembered
        break
      }
      guard next.first > 1, let row = try tables.row(of: .runs, next.keyBefore) else {
        throw LedgerFinding(.runs, next.keyBefore, "it is not there, and the context of the run behind it stands on it")
      }
      next = try LedgerRun(row)
      step = try Step(next)
      steps.append(step)
    }
    var context = base
    for step in steps.reversed() {
      let resolved = step.form.resolved(on: context)
      // As a relay writes it, and in no other form that means the same.
      if case .increments = step.form, step.form != ContextForm.shorter(resolved, base: context) {
        throw LedgerFinding(.runs, step.key, "its context is not in its one form")
      }
      guard resolved.count <= ContextCodec.entryLimit else {
        throw LedgerFinding(.runs, step.key, "its context has too many entries")
      }
      remember(resolved, step.hash)
      context = resolved
    }
    return context ?? VersionVector()
  }

  private mutating func remember(_ context: VersionVector, _ hash: Digest) {
    guard known.updateValue(context, forKey: hash) == nil else { return }
    order.append(hash)
    entries += context.count + 1
    guard entries > ContextResolver.entryLimit else { return }
    // The older half at once, so that the list need not be moved for each.
    for old in order.prefix(max(1, order.count / 2)) {
      if let gone = known.removeValue(forKey: old) { entries -= gone.count + 1 }
    }
    order.removeFirst(max(1, order.count / 2))
  }
}
