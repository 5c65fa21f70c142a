import Replication

/// Numbers of a grant's subjects on the wire.
private enum SubjectNumber {
  static let device: UInt64 = 0
  static let user: UInt64 = 1
  static let role: UInt64 = 2
  static let everyone: UInt64 = 3
}

extension Statement.Body {
  package var kind: UInt16 {
    switch self {
    case .genesis: Statement.Kind.genesis.rawValue
    case .membership: Statement.Kind.membership.rawValue
    case .replica: Statement.Kind.replica.rawValue
    case .grant: Statement.Kind.grant.rawValue
    case .rule: Statement.Kind.rule.rawValue
    case .unknown(let kind): kind
    }
  }
}

extension CBORWriter {
  mutating func body(_ body: Statement.Body) throws(StatementError) {
    switch body {
    case .genesis(let genesis):
      arrayHeader(2)
      text(genesis.fleetName)
      publicKey(genesis.admissionKey)
    case .membership(let membership):
      arrayHeader(5)
      publicKey(membership.device)
      text(membership.user)
      text(membership.label)
      text(membership.role)
      value(.map(membership.profile))
    case .replica(let declaration):
      arrayHeader(3)
      replica(declaration.replica)
      uuid(declaration.nonce)
      digest(declaration.membership)
    case .grant(let grant):
      arrayHeader(grant.ends.isEmpty ? 3 : 4)
      subject(grant.subject)
      unsigned(grant.level.rawValue)
      text(grant.pattern)
      if !grant.ends.isEmpty { ends(grant.ends) }
    case .rule(let rule):
      arrayHeader(1)
      text(rule.key)
    case .unknown(let kind): throw .unknownKind(kind)
    }
  }

  /// `[0, partition, replica, sequence, tip]` for changes, `[1, scope, issuer, sequence, tip]` for statements.
  private mutating func ends(_ ends: [Statement.ChainEnd]) {
    arrayHeader(ends.count)
    for end in ends {
      arrayHeader(5)
      switch end.chain {
      case .changes(let partition, let replica):
        unsigned(0 as UInt64)
        text(partition)
        self.replica(replica)
      case .statements(let scope, let issuer):
        unsigned(1 as UInt64)
        text(scope)
        publicKey(issuer)
      }
      unsigned(end.position.sequence)
      tip(end.position.tip)
    }
  }

  private mutating func subject(_ subject: Statement.Subject) {
    if case .everyone = subject {
      arrayHeader(1)
      return unsigned(SubjectNumber.everyone)
    }
    arrayHeader(2)
    switch subject {
    case .device(let key):
      unsigned(SubjectNumber.device)
      publicKey(key)
    case .user(let user):
      unsigned(SubjectNumber.user)
      text(user)
    case .role(let role):
      unsigned(SubjectNumber.role)
      text(role)
    case .everyone: break
    }
  }
}

extension StatementCodec {
  static func readBody(kind: UInt16, _ bytes: ArraySlice<UInt8>) throws(StatementError) -> Statement.Body {
    var reader = CBORReader(bytes)
    do throws(CBORError) {
      let body: Statement.Body
      switch Statement.Kind(rawValue: kind) {
      case .genesis: body = .genesis(try reader.readGenesis())
      case .membership: body = .membership(try reader.readMembership())
      case .replica: body = .replica(try reader.readDeclaration())
      case .grant: body = .grant(try reader.readGrant())
      case .rule:
        try reader.readArrayHeader(count: 1)
        body = .rule(Statement.Rule(key: try reader.readName()))
      case .end, .raise, .baseline, .invitation, .room, .removal, .leave, .holdings, nil: return .unknown(kind: kind)
      }
      try reader.finish()
      return body
    } catch {
      throw .malformedBody(kind: kind, error)
    }
  }
}

extension CBORReader {
  /// A text of at most ``StatementCodec/textByteLimit`` bytes.
  package mutating func readName() throws(CBORError) -> Text {
    let start = offset
    let range = try readTextRange()
    guard range.count <= StatementCodec.textByteLimit else { throw CBORError(.tooLong, at: start) }
    return text(at: range)
  }

  fileprivate mutating func readGenesis() throws(CBORError) -> Statement.Genesis {
    try readArrayHeader(count: 2)
    return Statement.Genesis(fleetName: try readName(), admissionKey: try readPublicKey())
  }

  fileprivate mutating func readMembership() throws(CBORError) -> Statement.Membership {
    try readArrayHeader(count: 5)
    return Statement.Membership(
      device: try readPublicKey(), user: try readName(), label: try readName(), role: try readName(),
      profile: try readProfile())
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

  fileprivate mutating func readDeclaration() throws(CBORError) -> Statement.ReplicaDeclaration {
    try readArrayHeader(count: 3)
    return Statement.ReplicaDeclaration(
      replica: try readReplica(), nonce: try readUUID(), membership: try readDigest())
  }

  fileprivate mutating func readGrant() throws(CBORError) -> Statement.Grant {
    let head = offset
    let count = try readArrayHeader()
    guard count == 3 || count == 4 else { throw CBORError(.wrongLength, at: head) }
    let subject = try readSubject()
    let start = offset
    guard let level = AccessLevel(rawValue: try readUnsigned(UInt8.self)) else {
      throw CBORError(.outOfRange, at: start)
    }
    let pattern = try readName()
    return Statement.Grant(subject: subject, level: level, pattern: pattern, ends: count == 4 ? try readEnds() : [])
  }

  /// At least one: a grant that ends nothing has no list.
  private mutating func readEnds() throws(CBORError) -> [Statement.ChainEnd] {
    let start = offset
    let count = try readArrayHeader()
    guard count > 0, count <= PartitionVector.entryLimit else { throw CBORError(.wrongLength, at: start) }
    var ends: [Statement.ChainEnd] = []
    for _ in 0..<count { ends.append(try readEnd()) }
    return ends
  }

  private mutating func readEnd() throws(CBORError) -> Statement.ChainEnd {
    let start = offset
    try readArrayHeader(count: 5)
    let kind = try readUnsigned()
    let name = try readName()
    let chain: Statement.ChainEnd.Chain
    switch kind {
    case 0: chain = .changes(partition: name, replica: try readReplica())
    case 1: chain = .statements(scope: name, issuer: try readPublicKey())
    default: throw CBORError(.outOfRange, at: start)
    }
    let sequenceStart = offset
    let sequence = try readUnsigned()
    guard sequence <= RunSummary.sequenceLimit else { throw CBORError(.outOfRange, at: sequenceStart) }
    return Statement.ChainEnd(chain: chain, position: ChainPosition(sequence: sequence, tip: try readTip()))
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
}
