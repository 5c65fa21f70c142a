import Replication
import Storage
import Wire

/// What a run off the wire writes, as the engine needs it: where its documents lie, and nothing of what made sure that they
/// are well formed. That was allocated by the IO thread and goes there again, which a backlog feels.
struct ArrivedContent: Sendable {
  private(set) var writes: [PlacedWrite]
  private(set) var buffer: ArraySlice<UInt8>
  /// Where something is still to be looked at: the signer is not known, or the payload travels apart.
  private(set) var open: RunContent?

  init(_ run: DecodedRun, isSignerKnown: Bool) {
    let content = RunContent(run)
    (writes, buffer) = (content.writes, content.buffer)
    open = isSignerKnown && content.awaitedPayload == nil ? nil : content
  }

  /// - Throws: ``RunError`` where it is not the payload that the run names, or breaks the rules of payloads.
  mutating func attach(_ payload: [UInt8]) throws {
    guard var content = open else { return }
    try content.attach(payload)
    (writes, buffer, open) = (content.writes, content.buffer, content)
  }

  var apartPayload: ApartPayload? { open?.apartPayload }
}
