import Engine
import Replication
import Wire

/// A run that some store took, decoded once for all nodes and all checks.
final class KnownRun {
  /// Tells runs of one world apart.
  let number: Int
  let decoded: DecodedRun
  let context: VersionVector
  let body: [UInt8]
  let observed: ObservedRun
  /// Whose signature it was found to bear.
  private var signer: PublicKey?

  init(number: Int, _ decoded: DecodedRun, context: VersionVector, body: [UInt8], observed: ObservedRun) {
    (self.number, self.decoded, self.context) = (number, decoded, context)
    (self.body, self.observed) = (body, observed)
  }

  var partition: PartitionID { decoded.chain.partition }
  var replica: ReplicaID { decoded.chain.replica }
  var first: UInt64 { decoded.first }
  var last: UInt64 { decoded.first + UInt64(decoded.changes.count) - 1 }

  /// Nil where the run does not reach there.
  func change(at sequence: UInt64) -> ObservedChange? {
    first <= sequence && sequence <= last ? observed.changes[Int(sequence - first)] : nil
  }

  func hash(at sequence: UInt64) -> Digest? { change(at: sequence)?.hash }

  func isSigned(by key: PublicKey) -> Bool {
    if signer == key { return true }
    guard (try? decoded.verifySignature(of: key, FakeCryptography.verify)) != nil else { return false }
    signer = key
    return true
  }
}

/// All runs that any store of a world took, found by their bytes.
struct RunLibrary {
  private struct Place: Hashable {
    let partition: PartitionID
    let bytes: Digest
  }

  /// What a store took is no run, or not the run that it says.
  enum Mistake: Error {
    case encoding(RunError)
    case otherChain
    case otherNumbers
    /// The context that is stored is not the one that the author hashed (rule C3).
    case context
  }

  private var runs: [Place: KnownRun] = [:]
  private let formats: KnownFormats

  /// In the order in which they were taken.
  var all: [KnownRun] { runs.values.sorted { $0.number < $1.number } }

  init(formats: KnownFormats) { self.formats = formats }

  func known(_ body: ArraySlice<UInt8>, in partition: PartitionID) -> KnownRun? {
    let place = Place(partition: partition, bytes: body.withUnsafeBytes(FakeCryptography.hash))
    return runs[place].flatMap { $0.body[...] == body ? $0 : nil }
  }

  /// The run that a store took, and whether no store had it before. `observe` is asked for what none had.
  mutating func take(
    _ appended: ObservedCommit.Appended, observe: (DecodedRun, VersionVector) -> ObservedRun
  ) throws(Mistake) -> (run: KnownRun, isNew: Bool) {
    let (record, chain) = (appended.run, appended.chain)
    let old = known(record.body, in: chain.partition)
    let run = if let old { old } else { try decoded(record, chain, observe) }
    guard run.replica == chain.replica else { throw .otherChain }
    guard run.first == record.first, run.last == record.last else { throw .otherNumbers }
    guard run.context == record.context else { throw .context }
    return (run, old == nil)
  }

  private mutating func decoded(
    _ record: AppendedRun, _ chain: ChainIdentity, _ observe: (DecodedRun, VersionVector) -> ObservedRun
  ) throws(Mistake) -> KnownRun {
    let decoded: DecodedRun
    do throws(RunError) {
      decoded = try RunCodec.decode(
        record.body, fleet: chain.fleet, partition: chain.partition, formats: formats, hash: FakeCryptography.hash)
    } catch {
      throw .encoding(error)
    }
    let context = NaivePosition.entries(of: record.context)
    guard NaivePosition.digest(of: context, FakeCryptography.hash) == decoded.contextDigest else { throw .context }
    let run = KnownRun(
      number: runs.count, decoded, context: record.context, body: Array(record.body),
      observed: observe(decoded, record.context))
    runs[Place(partition: chain.partition, bytes: record.body.withUnsafeBytes(FakeCryptography.hash))] = run
    return run
  }
}
