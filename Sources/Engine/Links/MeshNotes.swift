import Replication

/// Tells people what the core saw.
final class MeshNotes {
  private let journal: any EngineJournal
  private let links: LinkDirector
  /// Requests to join with a code that this device did not make, since the start.
  private(set) var refusedJoins = 0

  init(_ journal: any EngineJournal, _ links: LinkDirector) { (self.journal, self.links) = (journal, links) }

  func take(_ note: Mesh.Note, _ id: SessionID?) {
    let address = JournalFact.text(links.address(id))
    switch note {
    case .sessionReady(let device): journal.note(.info, "session ready", ["device": .device(device)])
    case .joinRefused(let refusal):
      if refusal == .wrongCode { refusedJoins += 1 }
      journal.note(.notice, "refused to admit a device", ["reason": .text("\(refusal)"), "address": address])
    case .peerRefused(let why):
      journal.note(.notice, "closed a connection", ["reason": .text(why), "address": address])
    case .forkSeen(let replica):
      journal.note(
        .error, "two histories of one replica: a cloned or restored device", ["replica": .replica(replica)])
    case .clockDiffers(let milliseconds):
      links.noteClock(id, milliseconds)
      journal.note(
        .notice, "a peer's clock differs", ["milliseconds": .text("\(milliseconds)"), "address": address])
    case .levelWith(let partition):
      journal.note(.debug, "level with a peer", ["partition": .text(partition.text.string)])
    }
  }
}
