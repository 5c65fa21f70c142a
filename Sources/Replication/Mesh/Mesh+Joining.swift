/// What the inviting device says to a request to join.
package enum JoinVerdict: Sendable, Equatable {
  case accepted(JoinAcceptance)
  case refused(JoinRefusal)
}

extension Mesh {
  mutating func receiveJoinRequest(_ id: SessionID, _ request: JoinRequest, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    sessions[id]?.state = .handshake(.joining)
    guard knowsFleet(session, request.fleetProof) else {
      // Nothing is said: a stranger who guesses learns not even that this is another fleet.
      return step.emit(.note(id, .peerRefused("asked to join another fleet")))
    }
    guard request.device == session.peer, !request.label.hasControlCharacters else {
      return fail(id, .protocolError, "a request to join that is not its device's", &step)
    }
    guard request.invitation.inviter == local.device else { return refuseJoin(id, hint(to: request), &step) }
    step.emit(.redeem(id, request, exporter: session.exporter))
  }

  /// What a member knows that did not make the invitation.
  private func hint(to request: JoinRequest) -> JoinRefusal {
    guard ledger.authority.devices(enteredBy: request.invitation).isEmpty else { return .used }
    return .askInviter(label: ledger.authority.member(of: request.invitation.inviter)?.membership.label ?? "")
  }

  private mutating func refuseJoin(_ id: SessionID, _ refusal: JoinRefusal, _ step: inout Step) {
    step.emit(.note(id, .joinRefused(refusal)))
    step.emit(.send(id, .joinRefused(refusal)))
    step.emit(.close(id, .notAMember))
    closed(id, &step)
  }

  mutating func joinJudged(_ id: SessionID, _ verdict: JoinVerdict, _ step: inout Step) {
    guard let session = sessions[id], session.phase == .joining, session.outbox.isEmpty else { return }
    switch verdict {
    case .refused(let refusal): refuseJoin(id, refusal, &step)
    case .accepted(let acceptance):
      // A member by now: what it is to be told may take longer than a stranger is given.
      step.emit(.admitted(id))
      sessions[id]?.outbox.put(ledger.authority.fleetStatements.map(\.encoded), then: .joined(acceptance))
      pumpStatements(id, &step)
    }
  }
}

extension Text {
  /// What could drive a terminal that shows it.
  package var hasControlCharacters: Bool { utf8.contains { $0 < 0x20 || $0 == 0x7f } }
}
