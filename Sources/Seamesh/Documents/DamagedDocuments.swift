import Engine
import Replication

extension NodeEngine {
  func damagedDocuments() -> [DamagedStatus] {
    state.quarantine.entries.flatMap { partition, documents in
      documents.map { key, entry in
        DamagedStatus(
          partition: state.mesh.partitions[partition]?.name.text.string ?? "", collection: key.collection.string,
          id: Value(canonicalID: key.id) ?? .bytes(key.id), reason: entry.reason)
      }
    }.sorted { ($0.partition, $0.collection, "\($0.id)") < ($1.partition, $1.collection, "\($1.id)") }
  }
}
