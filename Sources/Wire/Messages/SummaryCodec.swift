import Replication

/// Steps of a comparison, as they are numbered on the wire.
enum SummaryStep: UInt64 {
  case digest = 0
  case equal = 1
  case buckets = 2
  case partitions = 3
  case differing = 4
}

extension CBORWriter {
  mutating func summary(_ summary: Summary) {
    func begin(_ step: SummaryStep, items: Int) {
      message(.summary, items: items + 2)
      unsigned(summary.number)
      unsigned(step.rawValue)
    }
    switch summary.step {
    case .digest(let digest):
      begin(.digest, items: 1)
      words([digest])
    case .equal: begin(.equal, items: 0)
    case .buckets(let buckets):
      begin(.buckets, items: 1)
      words(buckets)
    case .partitions(let equal, let listings):
      begin(.partitions, items: 2)
      words([equal])
      arrayHeader(listings.count)
      for listing in listings {
        arrayHeader(2)
        unsigned(UInt64(listing.bucket))
        words(listing.entries.flatMap { [$0.prefix, $0.term] })
      }
    case .differing(let prefixes):
      begin(.differing, items: 1)
      words(prefixes)
    }
  }

  /// A byte string of big-endian words.
  mutating func words(_ words: [UInt64]) {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(words.count * 8)
    for word in words { appendBigEndian(word, to: &bytes) }
    byteString(bytes)
  }
}

extension CBORReader {
  mutating func summary(items: Int) throws(CBORError) -> Summary {
    let start = offset
    guard items >= 2 else { throw CBORError(.unexpectedType, at: start) }
    let number = try readUnsigned()
    guard let step = SummaryStep(rawValue: try readUnsigned()), items == 2 + step.itemCount else {
      throw CBORError(.unexpectedType, at: start)
    }
    switch step {
    case .digest: return Summary(number, .digest(try words(1)[0]))
    case .equal: return Summary(number, .equal)
    case .buckets: return Summary(number, .buckets(try words(Summary.bucketCount)))
    case .partitions: return Summary(number, .partitions(equal: try words(1)[0], try listings()))
    case .differing: return Summary(number, .differing(try words(upTo: Summary.listedLimit)))
    }
  }

  private mutating func listings() throws(CBORError) -> [BucketListing] {
    let start = offset
    let count = try readArrayHeader()
    guard count <= Summary.bucketCount else { throw CBORError(.tooLong, at: start) }
    var listings: [BucketListing] = []
    var room = Summary.listedLimit
    for _ in 0..<count {
      try readArrayHeader(count: 2)
      let place = offset
      let bucket = try readUnsigned()
      guard bucket < Summary.bucketCount, listings.last.map({ $0.bucket < bucket }) ?? true else {
        throw CBORError(.outOfRange, at: place)
      }
      let words = try words(upTo: 2 * room)
      guard words.count.isMultiple(of: 2) else { throw CBORError(.wrongLength, at: place) }
      let entries = stride(from: 0, to: words.count, by: 2).map {
        BucketListing.Entry(prefix: words[$0], term: words[$0 + 1])
      }
      room -= entries.count
      listings.append(BucketListing(bucket: Int(bucket), entries: entries))
    }
    return listings
  }

  mutating func words(_ count: Int) throws(CBORError) -> [UInt64] {
    let start = offset
    let words = try words(upTo: count)
    guard words.count == count else { throw CBORError(.wrongLength, at: start) }
    return words
  }

  mutating func words(upTo limit: Int) throws(CBORError) -> [UInt64] {
    let start = offset
    let range = try readByteRange()
    guard range.count.isMultiple(of: 8) else { throw CBORError(.wrongLength, at: start) }
    guard range.count <= limit * 8 else { throw CBORError(.tooLong, at: start) }
    return stride(from: range.lowerBound, to: range.upperBound, by: 8).map(wordContent)
  }
}

extension SummaryStep {
  /// Behind the comparison's number and the step.
  fileprivate var itemCount: Int {
    switch self {
    case .equal: 0
    case .digest, .buckets, .differing: 1
    case .partitions: 2
    }
  }
}
