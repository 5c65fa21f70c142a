import Replication

extension StatementCodec {
  /// What cannot be read as the known shape of its kind is of a later version: kept, passed on, without effect. The
  /// beginning of a membership, and of what may name tips, is the same in every shape (rule C27).
  static func readBody(
    kind: UInt16, _ bytes: ArraySlice<UInt8>
  ) throws(StatementError) -> (Statement.Body, StatementNotes) {
    let known = Statement.Kind(rawValue: kind)
    if let known, let read = readKnown(known, bytes) { return read }
    var reader = CBORReader(bytes)
    do throws(CBORError) {
      let unknown: Statement.Unknown
      switch known {
      case .membership:
        _ = try reader.readArrayHeader()
        let member = Statement.Unknown.Member(
          device: try reader.readPublicKey(), role: try reader.readName(), user: try reader.readName())
        unknown = Statement.Unknown(kind: kind, member: member)
      case .grant, .end, .raise, .removal:
        _ = try reader.readArrayHeader()
        unknown = Statement.Unknown(kind: kind, tips: try reader.readTips())
      default: unknown = Statement.Unknown(kind: kind)
      }
      return (.unknown(unknown), StatementNotes())
    } catch {
      throw .malformedBody(kind: kind, error)
    }
  }

  private static func readKnown(
    _ kind: Statement.Kind, _ bytes: ArraySlice<UInt8>
  ) -> (Statement.Body, StatementNotes)? {
    var reader = CBORReader(bytes)
    do throws(CBORError) {
      let count = try reader.readArrayHeader()
      let body = try reader.readBody(kind)
      guard count == kind.fieldCount || count == kind.fieldCount + 1 else { return nil }
      let notes = count == kind.fieldCount ? StatementNotes() : try reader.readNotes()
      try reader.finish()
      return (body, notes)
    } catch {
      return nil
    }
  }
}

extension Statement.Kind {
  /// Items of the body before its notes.
  fileprivate var fieldCount: Int {
    switch self {
    case .genesis, .room: 1
    case .rule, .baseline: 2
    case .replica, .invitation, .leave: 3
    case .raise: 4
    case .membership: 5
    case .end, .removal: 6
    case .grant: 7
    }
  }
}

extension CBORReader {
  fileprivate mutating func readBody(_ kind: Statement.Kind) throws(CBORError) -> Statement.Body {
    switch kind {
    case .genesis: .genesis(Statement.Genesis(fleetName: try readName()))
    case .membership: .membership(try readMembership())
    case .replica:
      .replica(
        Statement.ReplicaDeclaration(
          replica: try readReplica(), nonce: try readUUID(), membership: try readDigest()))
    case .grant: .grant(try readGrant())
    case .rule: .rule(try readRule())
    case .end: .end(try readEnd())
    case .raise: .raise(try readRaise())
    case .baseline: .baseline(try readBaseline())
    case .invitation:
      .invitation(Statement.Invitation(by: try readDigest(), user: try readName(), seen: try readIDs()))
    case .room: .room(Statement.Room(by: try readDigest()))
    case .removal: .removal(try readRemoval())
    case .leave: .leave(Statement.Leave(by: try readDigest(), user: try readName(), seen: try readIDs()))
    }
  }

  private mutating func readMembership() throws(CBORError) -> Statement.Membership {
    let (device, role) = (try readPublicKey(), try readName())
    return Statement.Membership(
      device: device, user: try readName(), label: try readName(), role: role, profile: try readProfile())
  }

  /// Texts under texts.
  private mutating func readProfile() throws(CBORError) -> ValueMap {
    let start = offset
    guard case .map(let profile) = try readValue() else { throw CBORError(.unexpectedType, at: start) }
    for entry in profile.entries {
      guard case .string(let text) = entry.value else { throw CBORError(.unexpectedType, at: start) }
      guard max(entry.key.utf8.count, text.utf8.count) <= StatementCodec.textByteLimit else {
        throw CBORError(.tooLong, at: start)
      }
    }
    return profile
  }

  private mutating func readGrant() throws(CBORError) -> Statement.Grant {
    let tips = try readTips()
    let subject = try readSubject()
    let start = offset
    guard let level = AccessLevel(rawValue: try readUnsigned(UInt8.self)) else {
      throw CBORError(.outOfRange, at: start)
    }
    return Statement.Grant(subject: subject, level: level, pattern: try readName(), listing: try readListing(tips))
  }

  private mutating func readSubject() throws(CBORError) -> Statement.Subject {
    let start = offset
    let count = try readArrayHeader()
    let number = try readUnsigned()
    guard count == (number == SubjectNumber.everyone ? 1 : 2) else { throw CBORError(.wrongLength, at: start) }
    switch number {
    case SubjectNumber.device: return .device(try readPublicKey())
    case SubjectNumber.user: return .user(try readName())
    case SubjectNumber.role: return .role(try readName())
    case SubjectNumber.everyone: return .everyone
    default: throw CBORError(.outOfRange, at: start)
    }
  }

  /// Fields ascend by their bytes, so that equal rules have equal bytes.
  private mutating func readRule() throws(CBORError) -> Statement.Rule {
    let key = try readName()
    var fields: [Text] = []
    for _ in 0..<(try readArrayHeader()) {
      let start = offset
      let field = try readName()
      guard fields.last.map({ $0 < field }) ?? true else { throw CBORError(.keyOrder, at: start) }
      fields.append(field)
    }
    return Statement.Rule(key: key, fields: Set(fields))
  }

  private mutating func readEnd() throws(CBORError) -> Statement.End {
    let tips = try readTips()
    let start = offset
    guard let reason = Statement.End.Reason(rawValue: try readUnsigned(UInt8.self)) else {
      throw CBORError(.outOfRange, at: start)
    }
    return Statement.End(reason: reason, target: try readTarget(), listing: try readListing(tips))
  }

  private mutating func readTarget() throws(CBORError) -> Statement.End.Target {
    let start = offset
    try readArrayHeader(count: 2)
    switch try readUnsigned() {
    case TargetNumber.membership: return .membership(try readDigest())
    case TargetNumber.replica: return .replica(try readReplica())
    case TargetNumber.grant: return .grant(try readDigest())
    default: throw CBORError(.outOfRange, at: start)
    }
  }

  private mutating func readRaise() throws(CBORError) -> Statement.Raise {
    let tips = try readTips()
    let end = try readDigest()
    let ends = try readEnds()
    return Statement.Raise(end: end, listing: Statement.Listing(ends: ends, tips: tips, more: try readBool()))
  }

  private mutating func readBaseline() throws(CBORError) -> Statement.Baseline {
    let partition = try readName()
    var entries: [Statement.Baseline.Entry] = []
    for _ in 0..<(try readArrayHeader()) {
      try readArrayHeader(count: 4)
      entries.append(
        Statement.Baseline.Entry(
          replica: try readReplica(), position: try readEndPosition(), ownLast: try readSequence()))
    }
    return Statement.Baseline(partition: partition, entries: entries)
  }

  private mutating func readRemoval() throws(CBORError) -> Statement.Removal {
    let tips = try readTips()
    let (by, user, seen) = (try readDigest(), try readName(), try readIDs())
    let ends = try readEnds()
    return Statement.Removal(
      by: by, user: user, seen: seen, listing: Statement.Listing(ends: ends, tips: tips, more: try readBool()))
  }
}
