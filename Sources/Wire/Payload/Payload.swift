import Replication

/// Limits of payloads that are part of the protocol version: every node refuses what exceeds them.
package enum Payload {
  /// Bytes of a collection's name.
  package static let collectionByteLimit = 255
  /// Canonical bytes of a document's id, so that keys stay small in indexes and in memory.
  package static let idByteLimit = 1024
  /// Segments of a path, the element or member that an operation adds among them.
  package static let segmentLimit = 64
}

extension DocumentWriteView {
  package func collection(in buffer: ArraySlice<UInt8>) -> Text {
    Text(String(decoding: buffer[collection], as: UTF8.self))
  }

  package func id(in buffer: ArraySlice<UInt8>) throws(PayloadError) -> Value {
    var reader = CBORReader(buffer[id])
    return try reading(try reader.readValue())
  }

  package func key(in buffer: ArraySlice<UInt8>) throws(PayloadError) -> DocumentKey {
    var canonical: [UInt8] = []
    try appendCanonicalID(in: buffer, to: &canonical)
    return DocumentKey(collection: collection(in: buffer), id: canonical)
  }

  /// Appends the canonical bytes (M2) of the document's id.
  package func appendCanonicalID(in buffer: ArraySlice<UInt8>, to out: inout [UInt8]) throws(PayloadError) {
    var reader = CBORReader(buffer[id])
    try reading(try reader.readCanonicalBytes(to: &out))
  }
}

/// What one pass over a well-formed payload found.
package struct PayloadScan: Sendable {
  /// In payload order: ascending by collection bytes, then canonical id.
  package let documents: [DocumentWriteView]
  package let operationCount: Int
  /// Per replica the highest change whose list elements the paths name, this change and its chain before it left out.
  /// All of them must be in the change's context (rule M4), which the payload alone cannot show.
  package let elementDots: [ReplicaID: UInt64]
}

/// A piece of reading, with its error as one of the payload's.
@inline(__always)
func reading<Result>(_ read: @autoclosure () throws(CBORError) -> Result) throws(PayloadError) -> Result {
  do throws(CBORError) { return try read() } catch { throw PayloadError(error) }
}
