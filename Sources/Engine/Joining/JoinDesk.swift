import Replication
import Wire

/// Judges requests to join by this device's invitations, and signs the memberships.
struct JoinDesk {
  let state: EngineState

  enum Decision {
    case refused(JoinRefusal)
    /// It is a member already: it asks again because the answer was lost.
    case isMember(JoinAcceptance)
    case admits(Statement, Invitation, JoinAcceptance)
  }

  /// Only who shows the secret hears more than that the code is wrong.
  func judge(_ request: JoinRequest, exporter: Digest) -> Decision {
    let invitation = state.invitations[request.invitation.serial]
    let code = state.identity.cryptography.authenticationCode
    // Without an invitation the same work is done.
    let secret = invitation?.secret.bytes ?? [UInt8](repeating: 0, count: InvitationSecret.byteCount)
    let isProved = code(secret, JoinProof.ofJoiner(request, to: state.identity.fleet, exporter: exporter))
      .equalsInConstantTime(request.proof)
    guard let invitation else {
      // A copy put back from before it was made. Any other member tells as much (`Mesh.hint`).
      return .refused(state.mesh.authority.devices(enteredBy: request.invitation).isEmpty ? .wrongCode : .used)
    }
    guard isProved else { return .refused(.wrongCode) }
    var acceptance = JoinAcceptance()
    acceptance.proof = code(
      secret, JoinProof.ofInviter(acceptance, to: request, of: state.identity.fleet, exporter: exporter))
    return decide(invitation, request, acceptance)
  }

  private func decide(
    _ invitation: Invitation, _ request: JoinRequest, _ acceptance: JoinAcceptance
  ) -> Decision {
    // The store may be older than what was said with it, where it was put back.
    let entered = state.mesh.authority.devices(enteredBy: request.invitation)
    if entered.contains(request.device) { return .isMember(acceptance) }
    guard entered.isEmpty else { return .refused(.used) }
    switch invitation.state {
    case .used: return .refused(.used)
    case .cancelled: return .refused(.cancelled)
    case .open: break
    }
    guard !invitation.isExpired(at: state.clock.wallMilliseconds) else { return .refused(.expired) }
    do throws(JoinProblem) {
      var used = invitation
      used.state = .used(request.device)
      return .admits(try membership(invitation, request), used, acceptance)
    } catch {
      return .refused(error.refusal)
    }
  }

  // MARK: Signing

  /// Why this device cannot admit anybody under a role.
  enum JoinProblem: Error {
    case notAnAdmin
    case rootKeyMissing

    var refusal: JoinRefusal {
      switch self {
      case .notAnAdmin: .notAnAdmin
      case .rootKeyMissing: .rootKeyMissing
      }
    }
  }

  /// Who signs memberships of the role here: this device where it may, root where its key lies here.
  func signer(for role: Text) throws(JoinProblem) -> RootSigner {
    let identity = state.identity
    if role != Authority.adminRole, state.mesh.authority.isAdmin(identity.device) {
      return RootSigner(key: identity.device, sign: identity.cryptography.sign)
    }
    if let root = identity.root(), root.key == state.mesh.authority.root { return root }
    throw role == Authority.adminRole ? .rootKeyMissing : .notAnAdmin
  }

  private func membership(_ invitation: Invitation, _ request: JoinRequest) throws(JoinProblem) -> Statement {
    let signer = try signer(for: invitation.role)
    let membership = Statement.Membership(
      device: request.device, user: invitation.user, label: request.label, role: invitation.role,
      profile: invitation.profile)
    let note = StatementNotes.Entry(
      key: StatementNotes.Key.invitationSerial, content: request.invitation.note(signedBy: signer.key))
    let last = state.mesh.authority.lastStatement(of: signer.key)
    do throws(StatementError) {
      let unsigned = try StatementCodec.unsigned(
        fleet: state.identity.fleet, issuer: signer.key, after: last, body: .membership(membership),
        notes: StatementNotes([note]))
      return try StatementCodec.assemble(
        unsigned: unsigned, signature: signer.sign(unsigned), state.identity.cryptography.hash)
    } catch {
      // The limits of the encoding were checked when the invitation was made, and the label's on the wire.
      throw .notAnAdmin
    }
  }
}
