import Replication
import Seamesh

let rightsRoutes: [Route] = [
  Route(
    method: .get, template: "/v1/permissions", name: "listPermissions",
    summary: "Who may do what, by which statements: in one partition what each device may, otherwise all grants. Times "
      + "are milliseconds since 1970: of the arrival here, or by the issuer's clock.",
    query: [
      .text("partition", "name of a partition", .partitionName),
      .text("who", "device:LABEL or device:KEY, user:ID, role:ROLE, or everyone", whom),
    ], result: .json(PermissionReport.schema), refusals: [.notFound, .unprocessable]
  ) { request, surroundings in
    let partition = try request.target[parameter: "partition"].map { name throws(Problem) in try partitionName(name) }
    return .json(try surroundings.node.permissions(partition, who: request.target[parameter: "who"]?.string).value)
  },
  Route(
    method: .get, template: "/v1/rules", name: "listRules",
    summary: "The rules, by which keys of partition names give rights.",
    result: .json(.listing("rules", of: RightStatus.schema))
  ) { _, surroundings in
    .json(.object(["rules": .list(try surroundings.node.rules(), \.value)]))
  },
  change(
    "/v1/grants", "grant",
    "Gives everyone whom `who` names this level in the partitions of the pattern, no more and no less.",
    [
      .required("who", whom), .required("level", .oneOf(AccessLevel.allCases.map { "\($0)" })),
      .required("pattern", .partitionName),
    ]
  ) { members throws(Problem) in
    .grant(
      who: try members.string("who").string, level: try members.string("level").string,
      pattern: try members.string("pattern"))
  },
  change(
    "/v1/revocations", "revoke",
    "Ends a device: what it wrote counts as far as it is here, or was at the time `at`. With `compromised` nothing of it "
      + "counts in partitions that are not carried here.",
    [
      .required("device", .string(from: 1)), .nullable("compromised", .boolean),
      .nullable("at", .string(format: "date-time")),
    ]
  ) { members throws(Problem) in
    .revoke(
      device: try members.string("device").string, isCompromised: try members.flag("compromised"),
      at: try members.optionalString("at")?.string)
  },
  change(
    "/v1/retirements", "retire", "Ends a device that has done its work: what it wrote goes on counting.",
    [.required("device", .string(from: 1))]
  ) { members throws(Problem) in .retire(device: try members.string("device").string) },
  change(
    "/v1/raises", "raise",
    "Lets count again what ends of a device hold back here, or what the one statement does whose id begins so.",
    [.required("what", .string(from: 1))]
  ) { members throws(Problem) in .raise(try members.string("what").string) },
  change(
    "/v1/promotions", "promote",
    "Makes a member an admin. Only where the fleet's root key lies. A device that was ended is let in again so, which needs yes.",
    [.required("device", .string(from: 1))]
  ) { members throws(Problem) in .promote(device: try members.string("device").string) },
]

private let whom = Schema.any([
  .constant(.text("everyone")), .string(pattern: #"^(device|user|role):[^\u0000-\u001f\u007f]+$"#),
])

private let dryRun = Schema.nullable(.boolean).describing("true: says what it would do, and signs nothing")
private let yes = Schema.nullable(.boolean).describing(
  "true: confirms it. What takes something away from anybody, or has warnings, is not signed without, and answered with 422; look "
    + "first with dryRun.")

/// A change of rights, with what all of them take.
private func change(
  _ template: String, _ name: String, _ summary: String, _ members: [Schema.Property],
  action: @escaping @Sendable (Members) throws(Problem) -> RightsChange.Action
) -> Route {
  let body = Schema.object(members + [.optional("dryRun", dryRun), .optional("yes", yes)])
  return Route(
    method: .post, template: template, name: name, summary: summary,
    body: .json(byteLimit: ServerLimit.smallBodyBytes, body), result: .json(RightsOutcome.schema),
    refusals: [.notFound, .notPermitted, .unprocessable], unixSocketOnly: true
  ) { request, surroundings in
    let members = try Members(JSON.envelope(request.body), of: "a change of rights", allowed: body.memberNames)
    let change = RightsChange(
      try action(members), isDryRun: try members.flag("dryRun"), isConfirmed: try members.flag("yes"))
    return .json(try surroundings.node.change(change).value)
  }
}

extension RightsOutcome: Tabled {
  static let table: [Member<RightsOutcome>] = [
    Member("signed", \.isSigned), Member("narrowing", \.isNarrowing), Member("statements", \.statements),
    Member("says", \.says), Member("signer", \.signer), Member("falls", \.falls),
    Member("effects", \.effects),
    Member("notCarried", \.notCarried), Member("warnings", \.warnings), Member("notes", \.notes),
  ]
}

extension RightsOutcome.Fall: Tabled {
  static let table: [Member<RightsOutcome.Fall>] = [
    Member("partition", \.partition), Member("lostChanges", \.lostChanges, .count),
    Member("gainedChanges", \.gainedChanges, .count), Member("documents", \.documents, .count),
  ]
}

extension RightStatus: Tabled {
  /// A right may have ends, which are such statements themselves.
  static var schema: Schema { .named("Right") }

  static let table: [Member<RightStatus>] = [
    Member("id", \.id), Member("kind", \.kind), Member("words", \.words), Member("level", \.level),
    Member("inForce", \.isInForce), Member("issuer", \.issuer), Member("since", \.since),
    Member("sinceBy", \.sinceBy), Member("issuedAt", \.issuedAt),
    Member("manner", \.manner, .oneOf(["", "retire", "revoke", "compromised"])), Member("endedBy", \.endedBy),
  ]
}

extension PermissionStatus: Tabled {
  static let table: [Member<PermissionStatus>] = [
    Member("device", \.device), Member("label", \.label), Member("user", \.user), Member("role", \.role),
    Member("isSelf", \.isSelf), Member("level", \.level), Member("rights", \.rights), Member("endedBy", \.endedBy),
  ]
}

extension PermissionReport: Tabled {
  static let table: [Member<PermissionReport>] = [Member("members", \.members), Member("rights", \.rights)]
}
