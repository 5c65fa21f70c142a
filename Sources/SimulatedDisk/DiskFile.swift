/// One file: what processes see of it, what is on disk for certain, and the writes between the two.
final class DiskFile {
  /// What the process sees.
  private(set) var content: ChunkedBytes
  /// What is on disk for certain.
  private var durable: ChunkedBytes
  /// Since the last sync, in order. The bytes lie one after another in ``pendingBytes``.
  private var pending: [Pending] = []
  private var pendingBytes = ChunkedBytes()
  /// Of the connections of this process.
  var locks = FileLocks()
  var index = SharedIndex()

  private enum Pending {
    /// `start`: place in ``pendingBytes``.
    case write(offset: Int, count: Int, start: Int)
    case truncate(Int)
  }

  /// On disk for certain.
  init(_ content: ChunkedBytes = ChunkedBytes()) { (self.content, durable) = (content, content) }

  /// The same state, without locks and index, which belong to running processes.
  init(copying other: DiskFile) {
    (content, durable, pending, pendingBytes) = (other.content, other.durable, other.pending, other.pendingBytes)
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
    content.write(bytes, at: offset)
    pending.append(.write(offset: offset, count: bytes.count, start: pendingBytes.count))
    pendingBytes.write(bytes, at: pendingBytes.count)
  }

  func truncate(_ size: Int) {
    content.resize(to: size)
    pending.append(.truncate(size))
  }

  /// Puts every piece that was written to on disk as it is now: the system keeps track of pages, not of writes.
  func sync() {
    guard !pending.isEmpty else { return }
    durable.resize(to: content.count)
    for change in pending {
      switch change {
      case .write(let offset, let count, _): durable.share(offset..<offset + count, of: content)
      case .truncate(let size): durable.share(min(size, content.count)..<content.count, of: content)
      }
    }
    forgetPending()
  }

  /// What a failed sync leaves: the process goes on seeing its writes, and the system no longer tries to write them.
  func loseUnsynced() { forgetPending() }

  private func forgetPending() {
    pending.removeAll(keepingCapacity: true)
    pendingBytes.resize(to: 0)
  }

  // MARK: After a loss of power

  func afterPowerLoss(_ rest: PowerLoss, _ random: inout DiskRandom) -> DiskFile {
    var result = durable
    switch rest {
    case .lost: break
    case .kept: for change in pending { apply(change, to: &result) }
    case .torn:
      for change in pending.flatMap(sectors).shuffled(using: &random) where Bool.random(using: &random) {
        apply(change, to: &result)
      }
    }
    return DiskFile(result)
  }

  private func sectors(_ change: Pending) -> [Pending] {
    guard case .write(let offset, let count, let start) = change else { return [change] }
    return stride(from: 0, to: count, by: SimulatedDisk.sectorByteCount).map { place in
      .write(
        offset: offset + place, count: min(SimulatedDisk.sectorByteCount, count - place), start: start + place)
    }
  }

  private func apply(_ change: Pending, to result: inout ChunkedBytes) {
    switch change {
    case .truncate(let size): result.resize(to: size)
    case .write(let offset, let count, let start):
      withUnsafeTemporaryAllocation(byteCount: count, alignment: 1) { buffer in
        _ = pendingBytes.read(buffer, at: start)
        result.write(UnsafeRawBufferPointer(buffer), at: offset)
      }
    }
  }
}
