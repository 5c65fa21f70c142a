/// One sentence each, as it goes on behind who sent it.
extension RunError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .encoding: "a run that is not in its one form"
    case .tooLong(let count, let limit): "a run of \(count) bytes; the limit is \(limit)"
    case .changeCount(let count, let limit): "a run of \(count) changes; the limit is \(limit)"
    case .payloadByteCount(let count, let limit): "a run with \(count) bytes of payloads; the limit is \(limit)"
    case .payloadPlace(let change): "change \(change) has its payload in the wrong place"
    case .options: "a run with extensions that it may not have"
    case .sequence: "a run whose changes are numbered wrongly"
    case .malformed(let change, _): "change \(change) breaks the rules of documents"
    case .payloadMismatch(let change): "the payload of change \(change) is not the one that was signed"
    case .contextDigest: "a run whose context is not the one that was signed"
    case .signature: "a run whose signature does not hold"
    }
  }
}
