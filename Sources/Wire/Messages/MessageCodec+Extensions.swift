import Replication

extension CBORWriter {
  mutating func extensions(_ extensions: MessageExtensions) {
    mapHeader(extensions.entries.count)
    for entry in extensions.entries {
      unsigned(entry.key)
      byteString(entry.content)
    }
  }
}

extension CBORReader {
  /// This version knows none: those that may not be ignored are refused.
  mutating func readExtensions() throws(CBORError) -> MessageExtensions {
    let start = offset
    let count = try readMapHeader()
    guard count <= MessageExtensions.countLimit else { throw CBORError(.tooLong, at: start) }
    var (entries, byteCount): ([MessageExtensions.Entry], Int) = ([], 0)
    for _ in 0..<count {
      let place = offset
      let key = try readUnsigned()
      guard entries.last.map({ $0.key < key }) ?? true else { throw CBORError(.keyOrder, at: place) }
      guard key < MessageExtensions.criticalKey else { throw CBORError(.unsupported, at: place) }
      let content = try readBytes()
      byteCount += content.count
      guard byteCount <= MessageExtensions.byteLimit else { throw CBORError(.tooLong, at: place) }
      entries.append(MessageExtensions.Entry(key: key, content: Array(content)))
    }
    return MessageExtensions(entries)
  }
}
