import Replication
import Seamesh

let invitationRoutes: [Route] = [
  Route(
    method: .post, template: "/v1/invitations", name: "invite",
    summary: "A code with which one other device enters the fleet.",
    body: .json(byteLimit: ServerLimit.smallBodyBytes, invitationSchema),
    result: .json(invitationResult(withCode: true)),
    refusals: [.notPermitted, .unprocessable], unixSocketOnly: true
  ) { request, surroundings in
    let members = try Members(
      JSON.envelope(request.body), of: "an invitation", allowed: invitationSchema.memberNames)
    let invitation = InviteRequest(
      user: try members.string("user"), role: try members.optionalString("role") ?? "",
      profile: try members.optionalObject("profile") ?? ValueMap(),
      validMilliseconds: try members.count("validMilliseconds").map { Int64($0) } ?? InviteRequest.validByDefault)
    let issued = try surroundings.node.invite(invitation)
    var answer = issued.status.members
    answer["code"] = .text(issued.code)
    answer["notes"] = .list(issued.notes) { .text($0) }
    return .json(.map(answer))
  },
  Route(
    method: .get, template: "/v1/invitations", name: "listInvitations",
    summary: "The invitations of this device that are open, without their codes.",
    result: .json(.listing("invitations", of: invitationResult(withCode: false))), unixSocketOnly: true
  ) { _, surroundings in
    .json(.object(["invitations": .list(try surroundings.node.invitations()) { .map($0.members) }]))
  },
  Route(
    method: .delete, template: "/v1/invitations/{serial}", name: "cancelInvitation",
    summary: "Nobody enters with this invitation any more.",
    result: .json(.object([.required("serial", .count), .required("cancelled", .boolean)])),
    refusals: [.notFound, .unprocessable], unixSocketOnly: true
  ) { request, surroundings in
    guard let serial = UInt64(request.parameter("serial").string) else {
      throw Problem.badRequest("the number of an invitation is an integer")
    }
    try surroundings.node.cancelInvitation(serial)
    return .json(.object(["serial": .int(Int64(clamping: serial)), "cancelled": .bool(true)]))
  },
]

private let invitationSchema = Schema.object([
  .required("user", .name(from: 1)), .nullable("role", .name()),
  .nullable("profile", .map(of: .name(), keys: .profileKey, to: NodeSetup.profileLimit)),
  .nullable("validMilliseconds", .count),
])

private func invitationResult(withCode: Bool) -> Schema {
  .object(
    [
      .required("serial", .count), .required("user", .string), .required("role", .string),
      .required("profile", .map(of: .string)), .required("expires", .integer),
    ] + (withCode ? [.required("code", .string), .required("notes", .array(of: .string))] : []))
}

extension InvitationStatus {
  fileprivate var members: ValueMap {
    ValueMap(members: [
      "serial": .int(Int64(clamping: serial)), "user": .string(user), "role": .string(role), "profile": .map(profile),
      "expires": .int(expires),
    ])
  }
}
