import Replication
import Seamesh
import Wire

// How the node's figures look as JSON: the names of the members are those of the types.

extension Value {
  static func optional(_ string: String?) -> Value { string.map { .text($0) } ?? .null }
  static func list<Element>(_ elements: [Element], _ value: (Element) -> Value) -> Value {
    .array(elements.map(value))
  }
}

extension NodeStatus: Tabled {
  static let table: [Member<NodeStatus>] = [
    Member("version", \.version), Member("fleet", \.fleet), Member("fleetName", \.fleetName),
    Member("device", \.device), Member("user", \.user), Member("label", \.label), Member("replica", \.replica),
    Member("directory", \.directory), Member("listen", \.listen),
    Member("uptimeMilliseconds", \.uptimeMilliseconds, .count), Member("documents", \.documents, .count),
    Member("changes", \.changes, .count), Member("logBytes", \.logBytes, .count),
    Member("databaseBytes", \.databaseBytes, .count), Member("diskFreeBytes", \.diskFreeBytes),
    Member("readOnly", \.readOnly), Member("held", \.held), Member("heldOfEnded", \.heldOfEnded),
    Member("peersConnected", \.peersConnected, .count), Member("discovery", \.discovery),
    Member("forwarding", \.forwarding), Member("links", \.links), Member("lostIfWiped", \.lostIfWiped),
    Member("setAside", \.setAside), Member("endedBy", \.endedBy), Member("conflicts", \.conflicts),
    Member("ageMilliseconds", \.ageMilliseconds, .count),
  ]
}

extension ConflictCount: Tabled {
  static let table: [Member<ConflictCount>] = [
    Member("openPartitions", \.openPartitions, .count), Member("partitions", \.partitions, .count),
  ]
}

extension ForwardingStatus: Tabled {
  static let table: [Member<ForwardingStatus>] = [
    Member("backend", \.backend),
    Member("state", .oneOf(ForwardingStatus.State.allCases.map(\.rawValue))) { $0.state.rawValue.value },
    Member("reason", \.reason), Member("remedy", \.remedy), Member("lagChanges", \.lagChanges),
    Member("lagBytes", \.lagBytes), Member("lagMilliseconds", \.lagMilliseconds),
    Member("forwardedChanges", \.forwardedChanges), Member("forwardedBytes", \.forwardedBytes),
    Member("logChanges", \.logChanges), Member("backendChanges", \.backendChanges), Member("putAside", \.putAside),
    Member("lostChanges", \.lostChanges), Member("deadLetters", \.deadLetters),
    Member("staleDocuments", \.staleDocuments), Member("remainingMilliseconds", \.remainingMilliseconds),
    Member("edits", \.edits),
  ]
}

extension ForwardingStatus.Edits: Tabled {
  static let table: [Member<ForwardingStatus.Edits>] = [
    Member("written", \.written, .count), Member("refused", \.refused, .count), Member("reason", \.reason),
  ]
}

extension RefusedRunStatus: Tabled {
  static let table: [Member<RefusedRunStatus>] = [
    Member("partition", \.partition), Member("replica", \.replica, .hexadecimal), Member("first", \.first),
    Member("last", \.last), Member("reason", \.reason),
  ]
}

extension RefusedStatementStatus: Tabled {
  static let table: [Member<RefusedStatementStatus>] = [
    Member("id", \.id, .hexadecimal), Member("issuer", \.issuer, .hexadecimal), Member("number", \.number),
    Member("room", \.room), Member("reason", \.reason),
  ]
}

extension LinkReport: Tabled {
  static let table: [Member<LinkReport>] = [
    Member("class", \.linkClass), Member("isChosen", \.isChosen), Member("interfaces", \.interfaces),
    Member("sessions", \.sessions, .count), Member("metered", .boolean) { .bool($0.bytesPerDay != nil) },
    Member("bytesPerDay", \.bytesPerDay), Member("bytesToday", \.bytesToday),
    Member("passes", \.passes, .oneOf(["everything", "partitions", "authority", "nothing"])),
    Member("carries", \.carries), Member("renewsMilliseconds", \.renewsMilliseconds),
    Member("waitingChanges", \.waitingChanges), Member("waitingBytes", \.waitingBytes),
    Member("waitingMilliseconds", \.waitingMilliseconds), Member("waitingCost", \.waitingCost),
  ]
}

extension PeerStatus: Tabled {
  static let table: [Member<PeerStatus>] = [
    Member("device", \.device), Member("label", \.label), Member("user", \.user), Member("address", \.address),
    Member("state", .oneOf(PeerStatus.State.allCases.map(\.rawValue))) { $0.state.rawValue.value },
    Member("ended", \.isEnded), Member("detail", \.detail),
    Member("roundTripMilliseconds", \.roundTripMilliseconds),
    Member("lastContactMilliseconds", \.lastContactMilliseconds), Member("behind", \.behind),
    Member("ahead", \.ahead), Member("sentBytes", \.sentBytes, .count),
    Member("receivedBytes", \.receivedBytes, .count),
  ]
}

extension DeviceStatus: Tabled {
  static let table: [Member<DeviceStatus>] = [
    Member("device", \.device), Member("user", \.user), Member("label", \.label), Member("role", \.role),
    Member("roles", \.roles), Member("profile", \.profile), Member("replicas", \.replicas), Member("isSelf", \.isSelf),
    Member("endedBy", \.endedBy),
  ]
}

extension PartitionStatus: Tabled {
  static let table: [Member<PartitionStatus>] = [
    Member("name", \.name), Member("subscribed", \.subscribed), Member("documents", \.documents, .count),
    Member("changes", \.changes, .count), Member("heldChanges", \.heldChanges, .count),
    Member("vector", .array(of: vectorEntry)) { status in
      .list(status.vector) { entry in
        .object(["replica": entry.replica.value, "sequence": entry.sequence.value, "tip": entry.tip.value])
      }
    },
    Member("digest", \.digest),
    Member("inboxDigest", \.inboxDigest), Member("conflicts", \.hasConflicts),
    Member("digestState", .oneOf(["not asked", "computed", "not computed", "failed"])) { $0.digestState.name.value },
    Member("digestReason", .nullable(.string)) { $0.digestState.reason.value },
  ]

  private static let vectorEntry = Schema.object([
    .required("replica", .hexadecimal), .required("sequence", .count), .required("tip", .hexadecimal),
  ])
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

extension DoctorFinding: Tabled {
  static let table: [Member<DoctorFinding>] = [
    Member("level", .oneOf(["ok", "warning", "problem"])) { $0.level.rawValue.value }, Member("code", \.code),
    Member("message", \.message), Member("remedy", \.remedy),
  ]
}

extension DamagedStatus: Tabled {
  static let table: [Member<DamagedStatus>] = [
    Member("partition", \.partition), Member("collection", \.collection), Member("id", \.id, .documentID),
    Member("reason", \.reason),
  ]
}

extension Dot {
  static let schema = Schema.object([
    .required("partition", .partitionName), .required("replica", .hexadecimal), .required("sequence", .count),
  ])

  func value(in partition: PartitionName) -> Value {
    .object([
      "partition": .string(partition.text), "replica": .text(hexadecimal(replica.bytes)),
      "sequence": .int(Int64(clamping: sequence)),
    ])
  }
}
