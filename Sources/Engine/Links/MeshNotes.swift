import Replication

/// Tells people what the core saw.
final class MeshNotes {
  private let journal: any EngineJournal
  private let links: LinkDirector
  private let clock: any EngineClock
  /// Requests to join with a code that this device did not make, since the start.
  private(set) var refusedJoins = 0
  private(set) var conduct = ConductBook()

  init(_ journal: any EngineJournal, _ links: LinkDirector, _ clock: any EngineClock) {
    (self.journal, self.links, self.clock) = (journal, links, clock)
  }

  func take(_ note: Mesh.Note, _ id: SessionID?) {
    switch note {
    case .sessionReady(let device): journal.note(.info, "session ready", ["device": .device(device)])
    case .joinRefused(let refusal):
      if refusal == .wrongCode { refusedJoins += 1 }
      tell("refused to admit a device", "\(refusal)", id)
    case .peerRefused(let why): tell("closed a connection", why, id)
    case .secondConnection:
      journal.note(.info, "closed a second connection to a peer", ["address": .text(links.address(id))])
    case .ruleBroken(let rule): tell(rule, id)
    case .forkSeen(let replica):
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

  /// Without the port, which is another with every connection.
  private func host(_ id: SessionID?) -> String { id.flatMap(links.host).map { "\($0)" } ?? "?" }

  /// The first time at once, the same from the same host once a minute.
  private func tell(_ what: String, _ why: String, _ id: SessionID?) {
    guard let times = refusals.note(.address(host(id)), "\(what): \(why)", clock) else { return }
    journal.note(
      .notice, what,
      ["reason": .text(why), "address": .text(links.address(id)), "times": .text("\(times)")])
  }

  /// No rule was broken: apart, so that they do not displace what is.
  private var refusals = ConductBook()

  private func tell(_ rule: BrokenRule, _ id: SessionID?) {
    let source = rule.user.map { ConductBook.Source.device(rule.device, user: $0) } ?? .address(host(id))
    guard let times = conduct.note(source, rule.reason, at: rule.place, clock) else { return }
    let (reason, address, count) = (JournalFact.text(rule.reason), JournalFact.text(links.address(id)), "\(times)")
    let user = JournalFact.text(rule.user?.string ?? "unknown")
    guard let place = rule.place else {
      return journal.note(
        .notice, "a peer broke the protocol",
        ["device": .device(rule.device), "user": user, "reason": reason, "address": address, "times": .text(count)])
    }
    journal.note(
      .notice, "a peer broke the protocol",
      [
        "device": .device(rule.device), "user": user, "reason": reason,
        "partition": .text(place.partition.text.string), "replica": .replica(place.replica),
        "change": .text("\(place.sequence)"), "address": address, "times": .text(count),
      ])
  }
}
