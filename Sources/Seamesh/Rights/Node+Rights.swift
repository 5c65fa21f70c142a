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
    let outcome = try engine.ask { engine -> Result<RightsOutcome, NodeError> in
      Result { () throws(NodeError) in
        do {
          let desk = RightsDesk(engine, device: StatementAuthor(key: own.publicKey, sign: own.sign), root: root)
          return try desk.change(change, before)
        } catch RightsError.needsRoot {
          throw self.needsRoot
        } catch {
          throw NodeError(any: error)
        }
      }
    }.get()
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
    let moment = try RightsForm.moment(at)
    guard moment <= WallClock.milliseconds else {
      throw NodeError(.unprocessable, "\(at) lies in the future: name a time at which what the device wrote was good")
    }
    return try documents.reading { reader in
      var changes: [PartitionID: [ReplicaID: UInt64]] = [:]
      for (partition, replica, last) in try reader.changes(before: moment) {
        changes[partition, default: [:]][replica] = last
      }
      let statements = try reader.statements().filter { ($0.arrived ?? 0) <= moment }.map(\.id)
      return ArrivedBefore(changes: changes, statements: Set(statements))
    }
  }
}

/// One change of rights, on the engine's thread.
struct RightsDesk {
  private let engine: NodeEngine
  private let device: StatementAuthor
  private let root: StatementAuthor?

  init(_ engine: NodeEngine, device: StatementAuthor, root: StatementAuthor?) {
    (self.engine, self.device) = (engine, device)
    // A root key of another fleet decides nothing here.
    self.root = root.flatMap { $0.key == engine.state.mesh.authority.root ? $0 : nil }
  }

  private var authority: Authority { engine.state.mesh.authority }
  private var names: RightsNames { RightsNames(authority) }

  func change(_ change: RightsChange, _ before: ArrivedBefore?) throws -> RightsOutcome {
    let request = try request(change, before)
    let authors = authors(for: request)
    let plan = try engine.plan(request, authors: authors)
    var outcome = outcome(of: plan)
    outcome.warnings = warnings(request, plan)
    outcome.notes = notes(request)
    if change.isDryRun {
      outcome.effects = LevelSentences(engine.levels(after: plan, request), own: device.key).sentences
    }
    guard !change.isDryRun, !plan.statements.isEmpty else { return outcome }
    guard outcome.warnings.isEmpty || change.isConfirmed else {
      throw NodeError(
        .unprocessable, outcome.warnings.joined(separator: "; ") + ": nothing was signed; confirm it with --yes")
    }
    try engine.carryOut(plan, authors: authors)
    outcome.isSigned = true
    return outcome
  }

  private func request(_ change: RightsChange, _ before: ArrivedBefore?) throws(NodeError) -> RightsRequest {
    switch change.action {
    case .grant(let who, let level, let pattern):
      .grant(try names.subject(who), try names.level(level), try RightsForm.pattern(pattern))
    case .revoke(let device, let isCompromised, _):
      .end(try names.device(device), isCompromised ? .compromised : .revoke, before)
    case .retire(let device): .end(try names.device(device), .retire, nil)
    case .raise(let what): .raise(try names.narrowings(what))
    case .promote(let device): .promote(try names.device(device))
    }
  }

  /// Who is to sign, the first whose word counts: an admin's own device, but root where an admin comes or goes.
  private func authors(for request: RightsRequest) -> [StatementAuthor] {
    let root = root.map { [$0] } ?? []
    return switch request {
    case .promote: root
    case .raise(let narrowings) where narrowings.contains(where: authority.endsAdmin): root
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

  private func warnings(_ request: RightsRequest, _ plan: RightsPlan) -> [String] {
    var warnings: [String] = []
    if case .end(device.key, _, _) = request { warnings.append("this ends the device on which it is asked for") }
    if plan.leavesNoAdmin {
      warnings.append("this ends the fleet's last admin: only the root key can then decide anything")
    }
    return warnings
  }

  private func notes(_ request: RightsRequest) -> [String] {
    guard case .grant(let subject, let level, let pattern) = request else { return [] }
    let unknown =
      level > .none && !names.isKnown(subject)
      ? ["no device of \(RightsWords(authority).words(subject)) is known yet: it holds for those that come"] : []
    return unknown + RightsBeside(authority, subject, level, pattern).sentences
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
