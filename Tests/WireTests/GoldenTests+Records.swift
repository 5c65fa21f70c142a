import Replication

@testable import Wire

/// Records that stand outside of sessions.
extension GoldenTests {
  private static let holder: SignedHoldings = {
    let vector = VersionVector([
      other: ChainPosition(sequence: 9, tip: TipHash(high: 1, low: 2)),
      replica: ChainPosition(sequence: 3, tip: TipHash(high: 3, low: 4)),
    ])
    let holdings = Holdings(
      fleet: fleet, device: PublicKey(repeating(0x99)), partition: name, number: 7, vector: vector,
      kind: .accepted, ownLast: Holdings.OwnLast(replica: replica, sequence: 4))
    return SignedHoldings(holdings, signature: signature)
  }()

  static let holdings = Example(name: "holdings", encoded: HoldingsCodec.encode(holder)) {
    try HoldingsCodec.decode($0) == holder
  }

  static let holdingsSigned: [Example] = {
    let encoded = HoldingsCodec.signedBytes(holder.holdings)
    return [Example(name: "holdings-signed-bytes", encoded: encoded) { Array($0) == encoded }]
  }()

  /// The rule of "Statements", then `run-single` and `run-sealed`, as in `message-runs`.
  static let bundle: Example = {
    let rule = statements.first { $0.name == "statement-rule" }?.encoded ?? []
    let entries = [
      Bundle.Entry(context: .full(context), encoded: run.encoded[...]),
      Bundle.Entry(context: .increments([]), encoded: held.encoded[...]),
    ]
    let bundle = Bundle(
      fleet: fleet, statements: [rule[...]], partitions: [Bundle.Partition(name: name, runs: entries)])
    return Example(name: "bundle", encoded: BundleCodec.encode(bundle)) { try BundleCodec.decode($0) == bundle }
  }()
}
