import Replication

extension CBORWriter {
  mutating func neighbours(_ news: NeighbourNews) {
    message(.neighbours, items: 2)
    words(news.added.sorted().map(\.word))
    words(news.removed.sorted().map(\.word))
  }
}

extension CBORReader {
  mutating func neighbours(_ items: Int) throws(CBORError) -> NeighbourNews {
    try expect(items, 2)
    return NeighbourNews(added: try deviceMarks(), removed: try deviceMarks())
  }

  /// Ascending.
  private mutating func deviceMarks() throws(CBORError) -> Set<DeviceMark> {
    let start = offset
    let words = try words(upTo: NeighbourNews.limit)
    guard zip(words, words.dropFirst()).allSatisfy({ $0 < $1 }) else { throw CBORError(.keyOrder, at: start) }
    return Set(words.map { DeviceMark(word: $0) })
  }
}
