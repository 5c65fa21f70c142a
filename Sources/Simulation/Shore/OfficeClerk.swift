import Forwarding
import Replication
import Wire

/// Somebody in the office who reads documents at the backend, and changes, makes and deletes some.
struct OfficeClerk {
  private let ledger: ModelLedger

  init(_ ledger: ModelLedger) { self.ledger = ledger }

  /// Nil where there is nothing to be read yet.
  func edit(_ random: inout SimulationRandom, at milliseconds: Int64) -> OfficeEdit? {
    let id = random.uuid()
    let places = ledger.documents.filter { $0.value.body != nil && $0.value.id != nil }.keys.sorted()
    guard let place = random.pick(places), let row = ledger.documents[place],
      let name = ledger.partitions[place.partition]
    else { return nil }
    let isNew = random.chance(12)
    var body = isNew ? ValueMap() : row.body.flatMap { try? ExtendedJSON.parseMap(Array($0.utf8)) } ?? ValueMap()
    body[random.pick(["a", "office"]) ?? "a"] = .int(Int64(truncatingIfNeeded: random.next() >> 12))
    if random.chance(20) { body["count"] = nil }
    let isDeleted = !isNew && random.chance(12)
    return OfficeEdit(
      id: UUIDValue(high: id.high, low: id.low), partition: name.text.string,
      collection: place.key.collection.string,
      documentID: isNew ? ExtendedJSON.text(.string(Text("new \(random.below(3))"))) : row.id ?? "",
      read: isNew ? nil : row.state, body: isDeleted ? nil : ExtendedJSON.text(.map(body)), user: "clerk",
      madeMilliseconds: milliseconds)
  }
}
