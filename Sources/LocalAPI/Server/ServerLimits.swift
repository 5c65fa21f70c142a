import Replication
import Seamesh
import Wire

/// What the local interface takes from one client, and from all of them together.
package enum ServerLimit {
  /// Per listener: each connection costs a thread, and a watch keeps one for as long as it lives.
  package static let connections: UInt32 = 80
  /// Requests under way at once, of so many connections: a tenth of these is for those that are told so, another for those that
  /// are about to end (``ConnectionTable``).
  package static func requests(of connections: Int) -> Int { max(1, connections * 4 / 5) }
  /// A longer filter belongs in the body of a `find`.
  package static let targetBytes = 16 * 1024
  /// Names and values of all headers.
  package static let headerBytes = 32 * 1024
  /// Request line and headers live in it, with room above the limits of both: what does not fit is answered by
  /// libmicrohttpd itself, and not as a problem.
  package static let connectionMemoryBytes = 128 * 1024
  /// A reader or writer that moves no byte for so long is cut off.
  package static let idleSeconds: UInt32 = 30
  /// A whole request must be in after this, however steadily it trickles.
  package static let requestMilliseconds: Int64 = 60_000

  /// One document: 1 MiB as stored (the node's limit). As JSON a Boolean in a list, or an escaped character, is six times as long.
  package static let documentBodyBytes = 8 * 1024 * 1024
  /// A transaction is one change, at most 4 MiB as stored; any document may be in one.
  package static let transactionBodyBytes = 16 * 1024 * 1024
  /// A batch of an import: larger files come as several batches, each answered before the next is sent.
  package static let importBodyBytes = 16 * 1024 * 1024
  /// Values in a body of one document, be it around an update of it, and in each line of an import.
  package static let documentValues = ExtendedJSON.Limits.documentValueCount
  /// As many as one change can hold, since each takes a byte of it.
  package static let transactionValues = Run.changePayloadByteLimit + ExtendedJSON.Limits.besideDocuments
  /// Lines of an import, blank ones with them: each record may have some around it.
  package static let importLines = 16 * BulkLimit.requests
  /// Everything that is not a document: queries, invitations, paths.
  package static let smallBodyBytes = 256 * 1024
  /// Bodies held in memory by all connections together: a full house of imports waits its turn.
  package static let allBodiesBytes = 128 * 1024 * 1024
  /// Values of these that are read at once, some 60 bytes each: the largest transaction alone, or what is smaller together.
  package static let allBodiesValues = transactionValues
  /// A body of no more values is read however many others are.
  package static let littleValues = 4_096
  /// A refused body up to this size is read and dropped, since many clients look at the answer only after sending all.
  package static let discardedBodyBytes: Int64 = 256 * 1024 * 1024

  /// UTF-8 bytes of a string id: what a change can hold, less the head of such a string in CBOR.
  package static let idBytes = Payload.idByteLimit - 3
  package static let queryParameters = 16

  package static let keepAliveMilliseconds: Int64 = 15_000
  /// How often a waiting stream looks whether its client is gone or the server is stopping.
  package static let streamPollMilliseconds = 250
  /// Whoever takes longer to read a result is cut off.
  package static let resultMilliseconds: Int64 = 60_000
  /// Chunks that an export may be ahead of its reader, and the size of one.
  package static let pipeChunks = 8
  package static let pipeChunkBytes = 64 * 1024
}

extension ExtendedJSON.Limits {
  /// Of a document as it comes to the local interface.
  package static let ofDocumentBody = ExtendedJSON.Limits(
    byteCount: ServerLimit.documentBodyBytes, valueCount: ServerLimit.documentValues)
}
