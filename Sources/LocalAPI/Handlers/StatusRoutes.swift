import Replication
import Seamesh

let statusRoutes: [Route] = [
  Route(
    method: .get, template: "/v1/status", name: "getStatus",
    summary:
      "What this node is and how it does. conflicts: in how many partitions something waits for a decision, of those "
      + "that /v1/partitions has summed up since the start, as they were then; null before it has.",
    result: .json(NodeStatus.schema)
  ) { _, surroundings in .json(try surroundings.node.status().value) },
  Route(
    method: .get, template: "/v1/peers", name: "listPeers", summary: "Whom this node sees, and how far behind whom.",
    result: .json(.listing("peers", of: PeerStatus.schema))
  ) { _, surroundings in
    .json(.object(["peers": .list(try surroundings.node.peers(), \.value)]))
  },
  Route(
    method: .get, template: "/v1/devices", name: "listDevices", summary: "The members of the fleet.",
    result: .json(.listing("devices", of: DeviceStatus.schema))
  ) { _, surroundings in .json(.object(["devices": .list(try surroundings.node.devices(), \.value)])) },
  Route(
    method: .get, template: "/v1/partitions", name: "listPartitions",
    summary: "What this node holds: documents, changes, version vector and state digest. The digest is the sum modulo "
      + "2^256 of SHA-256 over [partition, collection, id, body] of each living document in canonical CBOR, in hex, and "
      + "inboxDigest the same of what is in conflict inboxes; conflicts says whether anything is; null "
      + "where digestState is not \"computed\" but \"not computed\" (ask again), \"failed\" or \"not asked\", and "
      + "digestReason says why.",
    query: [.flag("digests", "false: leaves the state digests out, the first of which cost a pass over the documents")],
    result: .json(.listing("partitions", of: PartitionStatus.schema))
  ) { request, surroundings in
    let partitions = try surroundings.node.partitions(withDigests: request.flag("digests", default: true))
    return .json(.object(["partitions": .list(partitions, \.value)]))
  },
  Route(
    method: .get, template: "/v1/doctor", name: "runDoctor",
    summary: "Why nodes may not meet: every finding with its remedy.",
    result: .json(.listing("findings", of: DoctorFinding.schema))
  ) { _, surroundings in
    .json(.object(["findings": .list(try surroundings.node.doctor(), \.value)]))
  },
  Route(
    method: .get, template: "/v1/damaged", name: "listDamaged",
    summary: "Documents that were met and do not read on this device, nor could its log give them again.",
    result: .json(.listing("damaged", of: DamagedStatus.schema))
  ) { _, surroundings in
    .json(.object(["damaged": .list(try surroundings.node.damaged(), \.value)]))
  },
  Route(
    method: .get, template: "/metrics", name: "getMetrics", summary: "Figures for Prometheus.", result: .metrics
  ) { _, surroundings in
    Response(type: .metrics, body: .bytes(Array(try surroundings.node.metrics().utf8)))
  },
  Route(
    method: .get, template: "/v1/openapi.json", name: "getDescription", summary: "This description.",
    result: .json(.map(of: .anything))
  ) { _, surroundings in
    var bytes: [UInt8] = []
    plainJSON(openAPI(surroundings.routes), into: &bytes)
    return Response(type: .json, body: .bytes(bytes + [UInt8(ascii: "\n")]))
  },
]
