import Replication
import Seamesh

// How the node's figures look as JSON: the names of the fields are those of the types.

extension Value {
  static func optional(_ string: String?) -> Value { string.map { .text($0) } ?? .null }
  static func counts(_ counts: [String: Int64]) -> Value {
    var map = ValueMap()
    for (name, count) in counts { map[Text(name)] = .int(count) }
    return .map(map)
  }
  static func list<Element>(_ elements: [Element], _ value: (Element) -> Value) -> Value {
    .array(elements.map(value))
  }
}

extension NodeStatus {
  var value: Value {
    .object([
      "version": .text(version), "fleet": .text(fleet), "fleetName": .text(fleetName),
      "device": .text(device), "user": .text(user), "label": .text(label), "replica": .optional(replica),
      "directory": .text(directory), "listen": .list(listen) { .text($0) },
      "uptimeMilliseconds": .int(uptimeMilliseconds), "documents": .int(documents), "changes": .int(changes),
      "logBytes": .int(logBytes), "databaseBytes": .int(databaseBytes), "diskFreeBytes": .int(diskFreeBytes),
      "readOnly": .bool(readOnly), "held": .counts(held),
      "heldOfEnded": .counts(heldOfEnded),
      "peersConnected": .int(Int64(peersConnected)), "discovery": .text(discovery),
      "forwarding": forwarding.map(\.value) ?? .null, "links": .list(links, \.value),
      "lostIfWiped": lostIfWiped.map { .int(Int64(clamping: $0)) } ?? .null,
      "ageMilliseconds": .int(ageMilliseconds),
    ])
  }
}

extension ForwardingStatus {
  var value: Value {
    .object([
      "backend": .text(backend), "state": .text(state), "reason": .text(reason), "remedy": .text(remedy),
      "lagChanges": .int(lagChanges), "lagBytes": .int(lagBytes), "lagMilliseconds": .int(lagMilliseconds),
      "forwardedChanges": .int(forwardedChanges), "forwardedBytes": .int(forwardedBytes),
      "logChanges": .int(logChanges), "backendChanges": .int(backendChanges), "putAside": .int(putAside),
      "lostChanges": .int(lostChanges), "deadLetters": .int(deadLetters), "staleDocuments": .int(staleDocuments),
      "remainingMilliseconds": remainingMilliseconds.map { .int($0) } ?? .null,
      "edits": edits.map { edits in
        .object([
          "written": .int(Int64(edits.written)), "refused": .int(Int64(edits.refused)), "reason": .text(edits.reason),
        ])
      } ?? .null,
    ])
  }
}

extension LinkReport {
  var value: Value {
    .object([
      "class": .text(linkClass), "isChosen": .bool(isChosen), "interfaces": .list(interfaces) { .text($0) },
      "sessions": .int(sessions), "metered": .bool(bytesPerDay != nil),
      "bytesPerDay": bytesPerDay.map { .int($0) } ?? .null, "bytesToday": bytesToday.map { .int($0) } ?? .null,
      "passes": .text(passes), "carries": .list(carries) { .text($0) },
      "renewsMilliseconds": renewsMilliseconds.map { .int($0) } ?? .null,
      "waitingChanges": .int(waitingChanges), "waitingBytes": .int(waitingBytes),
      "waitingMilliseconds": .int(waitingMilliseconds), "waitingCost": .int(waitingCost),
    ])
  }
}

extension PeerStatus {
  var value: Value {
    .object([
      "device": .text(device), "label": .text(label), "user": .text(user), "address": .text(address),
      "state": .text(state), "detail": .text(detail),
      "roundTripMilliseconds": roundTripMilliseconds.map { .double($0) } ?? .null,
      "lastContactMilliseconds": lastContactMilliseconds.map { .int($0) } ?? .null,
      "behind": behind.map { .int($0) } ?? .null, "ahead": ahead.map { .int($0) } ?? .null,
      "sentBytes": .int(sentBytes), "receivedBytes": .int(receivedBytes),
    ])
  }
}

extension DeviceStatus {
  var value: Value {
    .object([
      "device": .text(device), "user": .text(user), "label": .text(label), "role": .text(role),
      "profile": .map(profile), "replicas": .list(replicas) { .text($0) }, "isSelf": .bool(isSelf),
      "endedBy": .list(endedBy, \.value),
    ])
  }
}

extension PartitionStatus {
  var value: Value {
    .object([
      "name": .text(name), "subscribed": .bool(subscribed), "documents": .int(documents),
      "changes": .int(changes), "heldChanges": .int(heldChanges),
      "vector": .list(vector) { entry in
        .object([
          "replica": .text(entry.replica), "sequence": .int(Int64(clamping: entry.sequence)),
          "tip": .text(entry.tip),
        ])
      },
      "digest": .optional(digest), "digestState": .text(digestState.name),
      "digestReason": .optional(digestState.reason),
    ])
  }
}

extension PartitionStatus.DigestState {
  fileprivate var name: String {
    switch self {
    case .notAsked: "not asked"
    case .computed: "computed"
    case .notComputed: "not computed"
    case .failed: "failed"
    }
  }

  fileprivate var reason: String? {
    switch self {
    case .notAsked, .computed: nil
    case .notComputed(let reason), .failed(let reason): reason
    }
  }
}

extension DoctorFinding {
  var value: Value {
    .object([
      "level": .text(level.rawValue), "code": .text(code), "message": .text(message), "remedy": .text(remedy),
    ])
  }
}

extension DamagedStatus {
  var value: Value {
    .object([
      "partition": .text(partition), "collection": .text(collection), "id": id, "reason": .text(reason),
    ])
  }
}

extension Dot {
  func value(in partition: PartitionName) -> Value {
    .object([
      "partition": .string(partition.text), "replica": .text(hexadecimal(replica.bytes)),
      "sequence": .int(Int64(clamping: sequence)),
    ])
  }
}

func hexadecimal(_ bytes: [UInt8]) -> String {
  let digits = Array("0123456789abcdef".utf8)
  return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
}
