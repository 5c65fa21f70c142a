import Replication
import Seamesh

let rightsRoutes: [Route] = [
  Route(
    method: .get, template: "/v1/permissions", name: "listPermissions",
    summary: "Who may do what, by which statements: in one partition what each device may, otherwise all grants. Times "
      + "are milliseconds since 1970: of the arrival here, or by the issuer's clock.",
    query: [
      .text("partition", "name of a partition"),
      .text("who", "device:LABEL or device:KEY, user:ID, role:ROLE, or everyone"),
    ], refusals: [.notFound, .unprocessable]
  ) { request, surroundings in
    let partition = try request.target[parameter: "partition"].map { name throws(Problem) in try partitionName(name) }
    let report = try surroundings.node.permissions(partition, who: request.target[parameter: "who"]?.string)
    return .json(.object(["members": .list(report.members, \.value), "rights": .list(report.rights, \.value)]))
  },
  Route(
    method: .get, template: "/v1/rules", name: "listRules",
    summary: "The rules, by which keys of partition names give rights."
  ) { _, surroundings in
    .json(.object(["rules": .list(try surroundings.node.rules(), \.value)]))
  },
  change(
    "/v1/grants", "grant",
    "Gives everyone whom `who` names this level in the partitions of the pattern, no more and no less.",
    ["who", "level", "pattern"]
  ) { members throws(Problem) in
    .grant(
      who: try members.string("who").string, level: try members.string("level").string,
      pattern: try members.string("pattern"))
  },
  change(
    "/v1/revocations", "revoke",
    "Ends a device: what it wrote counts as far as it is here, or was at the time `at`. With `compromised` nothing of it "
      + "counts in partitions that are not carried here.", ["device", "compromised", "at"]
  ) { members throws(Problem) in
    .revoke(
      device: try members.string("device").string, isCompromised: try members.flag("compromised"),
      at: try members.optionalString("at")?.string)
  },
  change(
    "/v1/retirements", "retire", "Ends a device that has done its work: what it wrote goes on counting.", ["device"]
  ) { members throws(Problem) in .retire(device: try members.string("device").string) },
  change(
    "/v1/raises", "raise",
    "Lets count again what ends of a device hold back here, or what the one statement does whose id begins so.",
    ["what"]
  ) { members throws(Problem) in .raise(try members.string("what").string) },
  change(
    "/v1/promotions", "promote", "Makes a member an admin. Only where the fleet's root key lies.", ["device"]
  ) { members throws(Problem) in .promote(device: try members.string("device").string) },
]

/// A change of rights, with what all of them take: `dryRun` says what it would do, `yes` confirms what has to be.
private func change(
  _ template: String, _ name: String, _ summary: String, _ members: [String],
  action: @escaping @Sendable (Members) throws(Problem) -> RightsChange.Action
) -> Route {
  let allowed = members + ["dryRun", "yes"]
  return Route(
    method: .post, template: template, name: name, summary: summary,
    body: .json(byteLimit: ServerLimit.smallBodyBytes, members: allowed),
    refusals: [.notFound, .notPermitted, .unprocessable], unixSocketOnly: true
  ) { request, surroundings in
    let members = try Members(JSON.envelope(request.body), of: "a change of rights", allowed: allowed.map { Text($0) })
    let change = RightsChange(
      try action(members), isDryRun: try members.flag("dryRun"), isConfirmed: try members.flag("yes"))
    return .json(try surroundings.node.change(change).value)
  }
}

extension RightsOutcome {
  var value: Value {
    .object([
      "signed": .bool(isSigned), "narrowing": .bool(isNarrowing), "statements": .list(statements) { .text($0) },
      "says": .list(says) { .text($0) }, "signer": .text(signer),
      "falls": .list(falls) { fall in
        .object([
          "partition": .text(fall.partition), "lostChanges": .int(Int64(fall.lostChanges)),
          "gainedChanges": .int(Int64(fall.gainedChanges)), "documents": .int(Int64(fall.documents)),
        ])
      },
      "notCarried": .list(notCarried) { .text($0) }, "warnings": .list(warnings) { .text($0) },
      "notes": .list(notes) { .text($0) },
    ])
  }
}

extension RightStatus {
  var value: Value {
    .object([
      "id": .text(id), "kind": .text(kind), "words": .text(words), "level": .text(level), "inForce": .bool(isInForce),
      "issuer": .text(issuer), "since": since.map { .int($0) } ?? .null, "sinceBy": .text(sinceBy),
      "endedBy": .list(endedBy, \.value),
    ])
  }
}

extension PermissionStatus {
  var value: Value {
    .object([
      "device": .text(device), "label": .text(label), "user": .text(user), "role": .text(role),
      "isSelf": .bool(isSelf), "level": .text(level), "rights": .list(rights, \.value),
      "endedBy": .list(endedBy, \.value),
    ])
  }
}
