import Replication

/// Tells people what the core saw, and remembers for them what does not pass.
final class MeshNotes {
  private let journal: any EngineJournal
  private let links: LinkDirector
  private let state: EngineState
  private var walls = Walls()
  /// Requests to join with a code that this device did not make, since the start.
  private(set) var refusedJoins = 0
  private(set) var conduct = ConductBook()
  /// Documents that somebody wanted to end since the start, and that nobody can; a few of them.
  private(set) var undeletable: Set<String> = []
  private static let undeletableLimit = 16
  private(set) var ownKey = OwnKeyNotes()

  init(_ journal: any EngineJournal, _ links: LinkDirector, _ state: EngineState) {
    (self.journal, self.links, self.state) = (journal, links, state)
  }

  func take(_ note: Mesh.Note, _ id: SessionID?) {
    switch note {
    case .sessionReady(let device):
      journal.note(.info, "session ready", ["device": .device(device)])
      if device == state.identity.deviceID { ownKey.met(at: links.address(id), state.clock.now) }
      noteWall(id)
    case .joinRefused(let refusal):
      if refusal == .wrongCode { refusedJoins += 1 }
      tell("refused to admit a device", "\(refusal)", id)
    case .peerRefused(let why): tell("closed a connection", why, id)
    case .secondConnection:
      journal.note(.info, "closed a second connection to a peer", ["address": .text(links.address(id))])
    case .ruleBroken(let rule): tell(rule, id)
    case .forkSeen(let replica):
      if state.mesh.authority.author(of: replica) == state.identity.device { ownKey.noteFork(of: replica) }
      journal.note(
        .error, "two histories of one replica: a cloned or restored device", ["replica": .replica(replica)])
    case .clockDiffers(let milliseconds):
      links.noteClock(id, milliseconds)
      journal.note(
        .notice, "a peer's clock differs",
        ["milliseconds": .text("\(milliseconds)"), "address": .text(links.address(id))])
    case .levelWith(let partition):
      journal.note(.debug, "level with a peer", ["partition": .text(partition.text.string)])
    }
  }

  /// A write that was refused, where its document cannot be ended any more.
  func noteUndeletable(_ refusal: any Error, in partition: PartitionName) {
    guard case .undeletable(let document)? = refusal as? EngineError, undeletable.count < MeshNotes.undeletableLimit
    else { return }
    undeletable.insert("\(document.collection.string) \(document.id) in \(partition.text.string)")
  }

  private func noteWall(_ id: SessionID?) {
    guard let session = id.flatMap({ state.mesh.sessions[$0] }), let wall = walls.raised(towards: session, in: state)
    else { return }
    journal.note(
      .notice, "keeps from a peer what it may not have",
      [
        "device": .device(session.device), "partitions": .text("\(wall.count)"),
        "first": .text(wall.first.text.string),
      ])
  }

  /// Without the port, which is another with every connection.
  private func host(_ id: SessionID?) -> String { id.flatMap(links.host).map { "\($0)" } ?? "?" }

  /// The first time at once, the same from the same host once a minute.
  private func tell(_ what: String, _ why: String, _ id: SessionID?) {
    guard let times = refusals.note(.address(host(id)), "\(what): \(why)", state.clock) else { return }
    journal.note(
      .notice, what,
      ["reason": .text(why), "address": .text(links.address(id)), "times": .text("\(times)")])
  }

  /// No rule was broken: apart, so that they do not displace what is.
  private var refusals = ConductBook()

  private func tell(_ rule: BrokenRule, _ id: SessionID?) {
    let source = rule.user.map { ConductBook.Source.device(rule.device, user: $0) } ?? .address(host(id))
    guard let times = conduct.note(source, rule.reason, at: rule.place, state.clock) else { return }
    write(rule, address: .text(links.address(id)), times: .text("\(times)"))
  }

  private func write(_ rule: BrokenRule, address: JournalFact, times: JournalFact) {
    let (what, device, reason) = ("a peer broke the protocol", JournalFact.device(rule.device), rule.reason)
    let user = JournalFact.text(rule.user?.string ?? "unknown")
    guard let place = rule.place else {
      return journal.note(
        .notice, what,
        ["device": device, "user": user, "reason": .text(reason), "address": address, "times": times])
    }
    let partition = JournalFact.text(place.partition.text.string)
    guard let change = place.change else {
      return journal.note(
        .notice, what,
        [
          "device": device, "user": user, "reason": .text(reason), "partition": partition, "address": address,
          "times": times,
        ])
    }
    journal.note(
      .notice, what,
      [
        "device": device, "user": user, "reason": .text(reason), "partition": partition,
        "replica": .replica(change.replica), "change": .text("\(change.sequence)"), "address": address, "times": times,
      ])
  }
}
