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

extension RunError: RuleBreach {
  package var rule: String {
    switch self {
    case .tooLong(_, let limit): "a run of more than \(limit) bytes"
    case .changeCount(_, let limit): "a run of no change, or of more than \(limit)"
    case .payloadByteCount(_, let limit): "a run with more than \(limit) bytes of payloads"
    case .payloadPlace: "a change that has its payload in the wrong place"
    case .malformed: "a change that breaks the rules of documents"
    case .payloadMismatch: "a change whose payload is not the one that was signed"
    case .encoding, .options, .sequence, .contextDigest, .signature: description
    }
  }

  /// The change that it is about, where that is one of the run's.
  package var change: UInt64? {
    switch self {
    case .payloadPlace(let change), .malformed(let change, _), .payloadMismatch(let change): change
    default: nil
    }
  }
}
