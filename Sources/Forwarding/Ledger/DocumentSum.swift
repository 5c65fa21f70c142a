import Replication
import Storage

/// What `seamesh.document_sum` computes of a row of documents, and was written beside it.
enum DocumentSum {
  static func of(_ row: LedgerRow, _ hash: HashFunction) throws(LedgerFinding) -> Digest {
    var input = try row.bytes("partition")
    for name in ["id", "state"] {
      let bytes = try row.bytes(name)
      appendBigEndian(UInt32(clamping: bytes.count), to: &input)
      input += bytes
    }
    let collection = try row.bytes("collection")
    input += Array("\(collection.count) ".utf8) + collection
    input += try part(row.optionalBytes("id_json"))
    let alive = try row.bytes("alive") == Array("t".utf8) ? 1 : 0
    input += part(Array("\(alive) \(try row.signed("generation"))".utf8))
    input += try part(row.optionalBytes("body"))
    if let refusal = try row.optionalBytes("refusal") { input += part(refusal) }
    return Digest.of(input, hash)
  }

  private static func part(_ bytes: [UInt8]?) -> [UInt8] { [1] + (bytes ?? []) }
}
