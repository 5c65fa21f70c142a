import Engine
import Replication
import Storage

// Payloads too large for their run.
extension MemoryStore {
  package func addPiece(_ bytes: ArraySlice<UInt8>, to share: StagedShare) throws {
    requireTransaction()
    let old = image.staged[share.key]
    image.staged[share.key] = (share, (old?.bytes ?? []) + bytes)
    onFailure { $0.staged[share.key] = old }
  }

  package func removePieces(_ key: StagedKey) throws {
    requireTransaction()
    guard let old = image.staged.removeValue(forKey: key) else { return }
    onFailure { $0.staged[key] = old }
  }

  package func addLargePayload(_ payload: ApartPayload) throws {
    requireTransaction()
    let hash = payload.hash
    guard image.largePayloads[hash] == nil else { return }
    image.largePayloads[hash] = Array(payload.bytes)
    onFailure { $0.largePayloads[hash] = nil }
  }
}
