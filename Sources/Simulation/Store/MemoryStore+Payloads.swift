import Engine
import Replication
import Storage

// Payloads too large for their run.
extension MemoryStore {
  package func addPiece(_ piece: PayloadPiece) throws {
    requireTransaction()
    let start = Int(clamping: piece.offset)
    let cost = piece.bytes.count + StagedPieces.rowByteCount
    if image.stagedByteCount + cost > StagedPieces.byteLimit { removeAllPieces() }
    let hash = piece.hash
    guard image.staged[hash, default: MemoryPieces()].add(piece.bytes, at: start) else { return }
    image.stagedByteCount += cost
    onFailure {
      $0.staged[hash]?.remove(at: start)
      if $0.staged[hash]?.isEmpty ?? false { $0.staged[hash] = nil }
    }
  }

  private func removeAllPieces() {
    let old = image.staged
    image.staged = [:]
    image.stagedByteCount = 0
    onFailure { $0.staged = old }
  }

  package func removePieces(of payload: Digest) throws {
    requireTransaction()
    guard let old = image.staged.removeValue(forKey: payload) else { return }
    image.stagedByteCount -= old.byteCount
    onFailure { $0.staged[payload] = old }
  }

  package func addLargePayload(_ payload: ApartPayload) throws {
    requireTransaction()
    let hash = payload.hash
    guard image.largePayloads[hash] == nil else { return }
    image.largePayloads[hash] = Array(payload.bytes)
    onFailure { $0.largePayloads[hash] = nil }
  }
}
