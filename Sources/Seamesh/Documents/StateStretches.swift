import Replication
import Storage

/// What a partition shows, summed up by stretches of its documents' keys. Where documents change, their stretches are read
/// anew, and no others.
struct StateStretches: Sendable {
  /// What the documents of a stretch come to.
  struct Content: Sendable {
    var (sum, inbox) = (StateSum(), StateSum())
    var documents: Int64 = 0
  }

  /// Keys of a collection that are to be read: above `after`, up to `end`. Nil: from the first, to the last.
  struct Gap: Sendable {
    let collection: Text
    let after: [UInt8]?
    let end: [UInt8]?
    fileprivate let index: Int
  }

  private struct Stretch: Sendable {
    /// Its last key; nil for the last stretch of a collection, where later keys come.
    let end: [UInt8]?
    /// Nil: to be read.
    var content: Content?
  }

  private struct Collection: Sendable {
    /// Ascending, without a gap.
    var stretches = [Stretch(end: nil)]
    /// All before it are read.
    var firstGap = 0

    /// The stretch to which a key belongs: the first that does not end before it.
    func index(of key: some Swift.Collection<UInt8>) -> Int {
      var (low, high) = (0, stretches.count - 1)
      while low < high {
        let middle = (low + high) / 2
        if let end = stretches[middle].end, end.lexicographicallyPrecedes(key) {
          low = middle + 1
        } else {
          high = middle
        }
      }
      return low
    }

    mutating func mark(_ key: some Swift.Collection<UInt8>) -> Bool {
      let index = index(of: key)
      guard stretches[index].content != nil else { return false }
      stretches[index].content = nil
      firstGap = min(firstGap, index)
      return true
    }

    mutating func findGap() -> (index: Int, after: [UInt8]?, end: [UInt8]?)? {
      while firstGap < stretches.count, stretches[firstGap].content != nil { firstGap += 1 }
      guard firstGap < stretches.count else { return nil }
      return (firstGap, firstGap == 0 ? nil : stretches[firstGap - 1].end, stretches[firstGap].end)
    }
  }

  private var collections: [Text: Collection] = [:]
  /// Commits before it are in what was read.
  var cursor: CommitFeed.Cursor?

  var count: Int { collections.values.reduce(0) { $0 + $1.stretches.count } }

  /// Collections that are new to it are to be read as a whole.
  mutating func know(_ names: some Sequence<Text>) {
    for name in names where collections[name] == nil { collections[name] = Collection() }
  }

  /// The document may have changed. Answers whether its stretch was read, and is to be read anew.
  @discardableResult
  mutating func mark(_ key: some Swift.Collection<UInt8>, of name: Text) -> Bool {
    collections[name]?.mark(key) ?? false
  }

  /// The first stretch of this collection that is to be read.
  mutating func gap(in name: Text) -> Gap? {
    collections[name]?.findGap().map { index, after, end in
      Gap(collection: name, after: after, end: end, index: index)
    }
  }

  /// All of the gap was read, or, where `last` is given, what lies up to there.
  mutating func fill(_ gap: Gap, upTo last: [UInt8]?, _ content: Content) {
    if let last {
      collections[gap.collection]?.stretches.insert(Stretch(end: last, content: content), at: gap.index)
    } else {
      collections[gap.collection]?.stretches[gap.index].content = content
    }
  }

  /// Of all documents, once nothing is left to be read.
  var total: Content {
    var total = Content()
    for stretch in collections.values.lazy.flatMap(\.stretches) {
      guard let content = stretch.content else { continue }
      total.sum.add(content.sum)
      total.inbox.add(content.inbox)
      total.documents += content.documents
    }
    return total
  }
}
