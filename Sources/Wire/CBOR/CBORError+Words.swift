extension CBORError: CustomStringConvertible {
  package var description: String { "bytes that do not read, at \(offset): \(kind.rawValue)" }
}
