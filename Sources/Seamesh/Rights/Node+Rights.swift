import Engine
import Identity
import Replication
import Storage

extension Node {
  /// Signs what brings the change about, or with ``RightsChange/isDryRun`` says what that would do. Refused, nothing is
  /// signed; done, it is on disk.
  package func change(_ change: RightsChange) throws(NodeError) -> RightsOutcome {
    let before = try arrivedBefore(change)
    let (root, own) = (try? rootAuthor.get(), files.deviceKey)
    let arrivals: [Digest: Int64?] = if case .promote = change.action { try statementArrivals() } else { [:] }
    let answer = try engine.ask { engine -> Result<RightsAnswer, NodeError> in
      Result { () throws(NodeError) in
        do {
          let author = StatementAuthor(key: own.publicKey, sign: own.sign)
          let desk = RightsDesk(engine, device: author, root: root, arrivals: arrivals)
          return try desk.change(change, before)
        } catch RightsError.needsRoot {
          throw self.needsRoot
        } catch {
          throw NodeError(any: error)
        }
      }
    }.get()
    let outcome = answer.explained(for: own.publicKey)
    guard outcome.isSigned else { return outcome }
    // Another question waits for the commit.
    let isStored = try engine.ask { engine in
      outcome.statements.allSatisfy { Digest(text: $0).map(engine.state.mesh.authority.holds) ?? false }
        && engine.failure == nil
    }
    guard isStored else { throw NodeError(.failed, "the statements could not be stored; seamesh doctor may know why") }
    return outcome
  }

  /// The fleet's root key, where its file lies in the data directory: in the founder's, until it is moved to a safe place.
  private var rootAuthor: Result<StatementAuthor, FileError> {
    Result { () throws(FileError) in
      let key = try KeyFile.fleetRoot.loadKey(in: files.directory)
      return StatementAuthor(key: key.publicKey, sign: key.sign)
    }
  }

  /// A key that lies here and cannot be used is another matter than one that does not.
  private var needsRoot: NodeError {
    let path = KeyFile.fleetRoot.path(in: files.directory)
    guard DirectoryContents(files.directory.path).present.contains(.rootKey) else {
      return NodeError(.notPermitted, "\(RightsError.needsRoot)")
    }
    let why =
      switch rootAuthor {
      case .success: "it is that of another fleet"
      case .failure(let error): "\(error)"
      }
    return NodeError(.notPermitted, "only the fleet's root key can sign this, and \(path) cannot be used: \(why)")
  }

  private func arrivedBefore(_ change: RightsChange) throws(NodeError) -> ArrivedBefore? {
    guard case .revoke(_, _, let at?) = change.action else { return nil }
    let moment = try RightsForm.pastMoment(at)
    return try documents.reading { try $0.arrived(before: moment) }
  }
}

/// What came of a change of rights, and what is left to be said of it, which nobody but who asked has to wait for.
private struct RightsAnswer: Sendable {
  var outcome: RightsOutcome
  let request: RightsRequest
  /// As it was before the change.
  let authority: Authority
  /// Of a dry run.
  var levels: LevelForecaster?

  func explained(for device: PublicKey) -> RightsOutcome {
    var outcome = outcome
    outcome.notes += notes
    if let levels { outcome.effects = LevelSentences(levels.foresight, own: device).sentences }
    return outcome
  }

  private var notes: [String] {
    guard case .grant(let subject, let level, let pattern) = request else { return [] }
    let unknown =
      level > .none && !RightsNames(authority).isKnown(subject)
      ? ["no device of \(RightsWords(authority).words(subject)) is known yet: it holds for those that come"] : []
    return unknown + RightsBeside(authority, subject, level, pattern).sentences
  }
}

/// One change of rights, on the engine's thread.
private struct RightsDesk {
  private let engine: NodeEngine
  private let device: StatementAuthor
  private let root: StatementAuthor?
  /// When statements came here, where somebody is to be told of one.
  private let arrivals: [Digest: Int64?]

  init(_ engine: NodeEngine, device: StatementAuthor, root: StatementAuthor?, arrivals: [Digest: Int64?]) {
    (self.engine, self.device, self.arrivals) = (engine, device, arrivals)
    // A root key of another fleet decides nothing here.
    self.root = root.flatMap { $0.key == engine.state.mesh.authority.root ? $0 : nil }
  }

  private var authority: Authority { engine.state.mesh.authority }
  private var names: RightsNames { RightsNames(authority) }

  func change(_ change: RightsChange, _ before: ArrivedBefore?) throws -> RightsAnswer {
    let (request, note) = try request(change, before)
    let authors = authors(for: request)
    let plan = try engine.plan(request, authors: authors)
    var answer = RightsAnswer(outcome: outcome(of: plan), request: request, authority: authority)
    answer.outcome.notes = [note, whatStaysEnded(request, plan)].compactMap { $0 }
    answer.outcome.warnings = warnings(request, plan)
    guard !change.isDryRun else {
      answer.levels = engine.levels(after: plan, request)
      return answer
    }
    guard !plan.statements.isEmpty else { return answer }
    if let reason = answer.outcome.reasonToConfirm, !change.isConfirmed {
      throw NodeError(.unprocessable, reason + ": nothing was signed; \(RightsChange.howToConfirm)")
    }
    try engine.carryOut(plan, authors: authors)
    answer.outcome.isSigned = true
    return answer
  }

  /// What is asked for, and which device that is about where its label alone does not say. What ends a device or raises an end is for
  /// good, and may be meant for either of two devices of one label: it names one by its key.
  private func request(
    _ change: RightsChange, _ before: ArrivedBefore?
  ) throws(NodeError) -> (request: RightsRequest, note: String?) {
    switch change.action {
    case .grant(let who, let level, let pattern):
      let (subject, note) = try names.subject(who, prefersStanding: true)
      return (.grant(subject, try names.level(level), try RightsForm.pattern(pattern)), note)
    case .revoke(let device, let isCompromised, _):
      return (.end(try names.device(device).device, isCompromised ? .compromised : .revoke, before), nil)
    case .retire(let device): return (.end(try names.device(device).device, .retire, nil), nil)
    case .raise(let what): return (.raise(try narrowings(what)), nil)
    case .promote(let device):
      let named = try names.device(device, prefersStanding: true)
      return (.promote(named.device), named.note)
    }
  }

  /// Of a device that stands nothing is ended; what its lowered rights hold is raised one by one.
  private func narrowings(_ what: String) throws(NodeError) -> [Digest] {
    let found = try names.narrowings(what)
    guard found.isEmpty else { return found }
    let device = try names.device(what).device
    var lowered = LoweredRights(authority) { $0 == device }
    for partition in engine.state.mesh.partitions.values { lowered.note(partition.log.held, in: partition.name) }
    let ids = lowered.work.flatMap(\.narrowings)
    guard !ids.isEmpty else { return [] }
    let raises = ids.map { "seamesh raise \($0)" }.joined(separator: " and ")
    throw NodeError(
      .unprocessable,
      "\(what) was not ended; a lowered right holds what it wrote: \(raises) lets that count, and all that it holds of others"
    )
  }

  /// Who is to sign, the first whose word counts: an admin's own device, but root where an admin comes or goes, or is to come back.
  private func authors(for request: RightsRequest) -> [StatementAuthor] {
    let root = root.map { [$0] } ?? []
    return switch request {
    case .promote: root
    case .raise(let narrowings) where narrowings.contains(where: authority.endsAdmin): root + [device]
    case .end(let target, _, _) where authority.isAdmin(target): root + [device]
    case .raise, .grant, .end: [device] + root
    }
  }

  private func outcome(of plan: RightsPlan) -> RightsOutcome {
    var outcome = RightsOutcome()
    let words = RightsWords(authority)
    outcome.isNarrowing = plan.isNarrowing
    outcome.statements = plan.statements.map(\.id.text)
    outcome.says = plan.statements.map { words.words($0.body) }
    outcome.signer = plan.author == authority.root ? "the fleet's root" : "this device"
    outcome.falls = plan.falls.map {
      RightsOutcome.Fall(
        partition: $0.name.text.string, lostChanges: $0.lostChanges, gainedChanges: $0.gainedChanges,
        documents: $0.documents)
    }
    outcome.notCarried = plan.notCarried.map(\.text.string)
    return outcome
  }

  /// What an admin gives back of another is less than what root would.
  private func whatStaysEnded(_ request: RightsRequest, _ plan: RightsPlan) -> String? {
    guard case .raise(let narrowings) = request, plan.author != authority.root,
      narrowings.contains(where: authority.endsAdmin)
    else { return nil }
    return
      "what it held of changes counts again; what the device decided as an admin since, and replica ids that it declared "
      + "since, only the fleet's root key gives back"
  }

  private func warnings(_ request: RightsRequest, _ plan: RightsPlan) -> [String] {
    var warnings: [String] = []
    if case .end(device.key, _, _) = request { warnings.append("this ends the device on which it is asked for") }
    if plan.leavesNoAdmin {
      warnings.append("this ends the fleet's last admin: only the root key can then decide anything")
    }
    if case .promote(let device) = request, !plan.statements.isEmpty { warnings += warning(promoting: device) }
    return warnings
  }

  /// Whoever makes an ended device an admin lets it in again, and may not know that it was sent away.
  private func warning(promoting key: PublicKey) -> [String] {
    let isEnded = authority.isEnded(key)
    let memberships = authority.members(of: key).filter { isEnded || $0.membership.role == Authority.adminRole }
    let ends = PermissionDesk(authority: authority, device: device.key, arrivals: arrivals).ends(of: memberships)
    guard !ends.isEmpty else { return [] }
    let name = "\(RightsWords(authority).name(of: key)) (\(DeviceID(key).shortText))"
    let how = ends.map(\.endSentence).joined(separator: " and ")
    return [
      isEnded
        ? "\(name) is no member any more: it was \(how); this lets it in again, as an admin"
        : "\(name) was an admin before, and was as such \(how)"
    ]
  }
}

extension NodeError {
  init(_ error: RightsError) {
    switch error {
    case .noRightToSign, .needsRoot, .notAMember: self.init(.notPermitted, "\(error)")
    case .alreadyEnded, .nothingToRaise: self.init(.unprocessable, "\(error)")
    case .tooManyStatements: self.init(.tooLarge, "\(error)")
    }
  }
}
