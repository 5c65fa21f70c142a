import Engine
import Replication
import Storage
import Wire

/// A run of the log. Never changes, so that images share it, with what was decoded of it.
final class MemoryRun {
  let record: LogRun
  private var decoded: (run: DecodedRun, formats: KnownFormats)?

  init(_ record: LogRun) { self.record = record }

  func decode(
    of partition: PartitionID, in fleet: FleetID, _ formats: KnownFormats, _ hash: HashFunction
  ) throws(StoreError) -> DecodedRun {
    if let decoded, decoded.formats == formats { return decoded.run }
    do throws(RunError) {
      let run = try RunCodec.decode(
        record.body[...], fleet: fleet, partition: partition, formats: formats, hash: hash)
      decoded = (run, formats)
      return run
    } catch {
      throw .damaged("run \(record.arrival): \(error)")
    }
  }
}

/// One state of a document, as bytes, as entries or as both: each is made from the other when it is first asked for, so
/// that nothing is decoded or encoded twice. Never changes, so that images share it.
final class MemoryDocument {
  let row: Int64
  let isAlive: Bool
  private var bytes: [UInt8]?
  private var state: DocumentState?

  init(row: Int64, isAlive: Bool, bytes: [UInt8]) { (self.row, self.isAlive, self.bytes) = (row, isAlive, bytes) }

  init(row: Int64, state: DocumentState) { (self.row, self.isAlive, self.state) = (row, state.isAlive, state) }

  var record: LogDocument { LogDocument(row: row, isAlive: isAlive, state: encoded()) }

  private func encoded() -> [UInt8] {
    if let bytes { return bytes }
    let made = state.map { DocumentStateCodec.encode(generation: $0.generation, groups: $0.groups) } ?? []
    bytes = made
    return made
  }

  func decoded() throws(StoreError) -> DocumentState {
    if let state { return state }
    do throws(CBORError) {
      let stored = try DocumentStateCodec.decode((bytes ?? [])[...])
      let made = DocumentState(generation: stored.generation, groups: stored.groups)
      state = made
      return made
    } catch {
      throw .damaged("state of document \(row): \(error)")
    }
  }
}
