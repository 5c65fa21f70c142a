/// How much is measured.
struct BenchSizes: Sendable {
  var documents = 200_000
  var storageRounds = 3
  var catchUpRounds = 3
  var starts = 5
  var writes = 1_000
  var wireDocuments = 50_000
  var partitionCounts = [1, 1_000, 10_000]
  var findDocuments = 1_000_000
  var finds = 100
  var scale = ScaleSizes.full

  static let full = BenchSizes()

  /// The most documents that one collection of a measurement has; a store takes some 450 bytes for each.
  static let largestDocuments = 10_000_000

  /// So many documents where parts write them: once, where that takes minutes.
  mutating func take(documents count: Int) throws(Failure) {
    guard 1_000...BenchSizes.largestDocuments ~= count else {
      throw .usage("--documents takes 1000 to \(BenchSizes.largestDocuments), not \(count)")
    }
    documents = count
    // What takes minutes is measured once.
    if count > 1_000_000 { (storageRounds, catchUpRounds) = (1, 1) }
  }

  /// How long a part waits for what it measures: a slow device with many documents takes long.
  var waitMilliseconds: Int64 { max(300_000, Int64(documents) * 2) }

  /// For a look in between: every part runs, and no figure is to be quoted.
  static let quick = BenchSizes(
    documents: 20_000, storageRounds: 1, catchUpRounds: 1, starts: 2, writes: 200, wireDocuments: 5_000,
    partitionCounts: [1, 100],
    findDocuments: 20_000, finds: 10, scale: .quick)
}
