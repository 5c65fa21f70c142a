extension CBORError: CustomStringConvertible {
  package var description: String { "bytes that do not read, at \(offset): \(kind.rawValue)" }
}

extension CBORError: RuleBreach {
  package var rule: String { "bytes that do not read: \(kind.rawValue)" }
}
