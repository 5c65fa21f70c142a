/// How much is measured.
struct BenchSizes: Sendable {
  var documents = 200_000
  var catchUpRounds = 3
  var starts = 5
  var writes = 1_000
  var wireDocuments = 50_000
  var partitionCounts = [1, 1_000, 10_000]
  var findDocuments = 1_000_000
  var finds = 100
  var scale = ScaleSizes.full

  static let full = BenchSizes()
  /// For a look in between: every part runs, and no figure is to be quoted.
  static let quick = BenchSizes(
    documents: 20_000, catchUpRounds: 1, starts: 2, writes: 200, wireDocuments: 5_000, partitionCounts: [1, 100],
    findDocuments: 20_000, finds: 10, scale: .quick)
}
