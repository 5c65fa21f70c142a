import Identity
import Replication
import Storage
import Synchronization

/// Where an insert under a key makes its document: an id that both the key and the body are known by, however the document is
/// edited later.
///
/// 64 bits are of device, partition, collection and key, and 32 of the body. So of 2³² other bodies under a key one is taken for
/// the first, and a key that chances upon the bits of another is refused, and overwrites nothing.
struct KeyedPlace {
  let id: ObjectID

  init(_ key: Text, _ body: ValueMap, _ device: DeviceID, _ partition: PartitionName, _ collection: Text) {
    let parts = [device.digest.bytes, Array(partition.text.utf8), Array(collection.utf8), Array(key.utf8)]
    let ofKey = SHA256.hash(parts.flatMap { SHA256.hash($0).bytes }).words.0
    // Canonical: the order of the members in what was sent says nothing.
    let ofBody = SHA256.hash(Value.map(body).canonicalBytes).words.0
    id = ObjectID(high: ofKey, low: UInt32(truncatingIfNeeded: ofBody >> 32))
  }

  var row: [UInt8] { Value.objectID(id).canonicalBytes }

  /// What the rows of all bodies under the key begin with; it stands before them in their order.
  var beginning: [UInt8] { row.dropLast(4) }
}

/// Inserts under one key wait for one another: whether the key made another document is looked up before the write.
final class InsertTurns: Sendable {
  /// Locked with the insert that was given up waiting for and may still be done.
  private final class Turn: Sendable { let open = Mutex<Reply<Bool>?>(nil) }
  private let turns = (0..<64).map { _ in Turn() }

  /// `body` gets what is to be told once its write has come to its end, also where nobody waits for that any more.
  func inTurn<Answer: Sendable>(
    of place: KeyedPlace, on engine: EngineLine, _ body: (Reply<Bool>) throws(NodeError) -> Answer
  ) throws(NodeError) -> Answer {
    let result = turns[Int(place.id.high % UInt64(turns.count))].open.withLock { open in
      Result { () throws(NodeError) in
        if let earlier = open { _ = try engine.answer(of: earlier) }
        open = nil
        let end = Reply<Bool>()
        do throws(NodeError) { return try body(end) } catch {
          if error.code == .unanswered { open = end }
          throw error
        }
      }
    }
    return try result.get()
  }
}

extension Node {
  package func insert(
    _ body: ValueMap, under key: Text, _ partition: PartitionName, _ collection: Text
  ) throws(NodeError) -> (id: ObjectID, receipt: WriteReceipt) {
    let place = KeyedPlace(key, body, device, partition, collection)
    let request = DocumentRequest(
      collection: collection, id: .objectID(place.id), action: .insertOnce(body: body), condition: nil)
    let receipt = try insertTurns.inTurn(of: place, on: engine) { end throws(NodeError) in
      try documents.checkIsFree(place, partition, collection)
      return try engine.submit([(partition, [request])]) { end.fulfil(true) }[0].get()
    }
    return (place.id, receipt)
  }
}

extension DocumentReader {
  /// Refuses where another body was inserted under the key, also one that was deleted since.
  fileprivate func checkIsFree(
    _ place: KeyedPlace, _ partition: PartitionName, _ collection: Text
  ) throws(NodeError) {
    let keys = try reading { reader -> [[UInt8]] in
      guard let stored = try self.place(partition, collection, reader) else { return [] }
      return try reader.documents(
        stored.partition, stored.collection, after: place.beginning, limit: 2, withDeleted: true
      ).map(\.key)
    }
    let made = keys.filter { $0.starts(with: place.beginning) }
    guard made.isEmpty || made.contains(place.row) else {
      throw NodeError(
        .unprocessable,
        "this key was used for another document: send what was sent under it first, or a new key with this one")
    }
  }
}
