import Replication

/// Numbers of refusals on the wire.
private enum RefusalNumber {
  static let wrongCode: UInt64 = 1
  static let expired: UInt64 = 2
  static let cancelled: UInt64 = 3
  static let used: UInt64 = 4
  static let askInviter: UInt64 = 5
  static let notAnAdmin: UInt64 = 6
  static let rootKeyMissing: UInt64 = 7
  static let busy: UInt64 = 8
}

extension JoinRefusal {
  fileprivate var number: UInt64 {
    switch self {
    case .wrongCode: RefusalNumber.wrongCode
    case .expired: RefusalNumber.expired
    case .cancelled: RefusalNumber.cancelled
    case .used: RefusalNumber.used
    case .askInviter: RefusalNumber.askInviter
    case .notAnAdmin: RefusalNumber.notAnAdmin
    case .rootKeyMissing: RefusalNumber.rootKeyMissing
    case .busy: RefusalNumber.busy
    }
  }

  fileprivate var label: Text { if case .askInviter(let label) = self { label } else { "" } }

  /// A number of a later version is read as one that may be asked again.
  fileprivate init(number: UInt64, label: Text) {
    switch number {
    case RefusalNumber.wrongCode: self = .wrongCode
    case RefusalNumber.expired: self = .expired
    case RefusalNumber.cancelled: self = .cancelled
    case RefusalNumber.used: self = .used
    case RefusalNumber.askInviter: self = .askInviter(label: label)
    case RefusalNumber.notAnAdmin: self = .notAnAdmin
    case RefusalNumber.rootKeyMissing: self = .rootKeyMissing
    default: self = .busy
    }
  }
}

extension CBORWriter {
  mutating func joinRequest(_ request: JoinRequest) {
    message(.joinRequest, items: 7)
    digest(request.fleetProof)
    publicKey(request.invitation.inviter)
    unsigned(request.invitation.serial)
    publicKey(request.device)
    text(request.label)
    digest(request.proof)
    extensions(request.extensions)
  }

  mutating func joinAccepted(_ acceptance: JoinAcceptance) {
    message(.joinAccepted, items: 2)
    digest(acceptance.proof)
    extensions(acceptance.extensions)
  }

  mutating func joinRefused(_ refusal: JoinRefusal) {
    message(.joinRefused, items: 2)
    unsigned(refusal.number)
    text(refusal.label)
  }
}

extension CBORReader {
  mutating func joinRequest(_ items: Int) throws(CBORError) -> JoinRequest {
    try expect(items, 7)
    let (fleetProof, inviter) = (try readDigest(), try readPublicKey())
    let serial = try readUnsigned()
    var request = JoinRequest(
      fleetProof: fleetProof, invitation: InvitationID(inviter: inviter, serial: serial), device: try readPublicKey(),
      label: try shortText(), proof: try readDigest())
    request.extensions = try readExtensions()
    return request
  }

  mutating func joinAccepted(_ items: Int) throws(CBORError) -> JoinAcceptance {
    try expect(items, 2)
    var acceptance = JoinAcceptance(proof: try readDigest())
    acceptance.extensions = try readExtensions()
    return acceptance
  }

  mutating func joinRefused(_ items: Int) throws(CBORError) -> JoinRefusal {
    try expect(items, 2)
    return JoinRefusal(number: try readUnsigned(), label: try shortText())
  }
}
