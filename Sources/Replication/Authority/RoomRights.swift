/// Who may write in one room (rules C24, C25).
///
/// Only the creator removes, and who leaves, leaves himself: so removals never depend on removals, and invitations are a
/// least fixpoint: one set has one answer.
struct RoomRights: Sendable {
  struct Invitation: Sendable {
    let id: Digest
    fileprivate let closers: [Narrowing]
    fileprivate let isLeft: Bool

    var isOpen: Bool { closers.isEmpty && !isLeft }

    func limit(of replica: ReplicaID, in room: Text) -> ChainPosition {
      .lowest(of: closers.map { $0.word.bound(of: replica, in: room) })
    }
  }

  private let room: Text
  /// The user who created it; no later narrowing takes it from him, nor from its members.
  let creator: Text?
  /// Those that count, by the user they invite.
  let invitations: [Text: [Invitation]]
  /// What every removal that ever was says, by the user removed: the floor asks, whether or not it counts.
  private let cuts: [Text: [ListedWord]]
  /// Users whose invitation might fall with somebody else's.
  private let doubtful: Set<Text>

  init(_ room: Text, _ statements: RoomStatements, _ speakers: RoomSpeakers) {
    self.room = room
    let creation = statements.creations.first { room == PartitionName.room(createdBy: $0.id) }
    let speaker = creation.flatMap { speakers.speaker(of: $0, as: $0.content.by) }
    let creator = speaker?.utf8.isEmpty == true ? nil : speaker
    self.creator = creator
    invitations = Draft(room, statements, speakers, creator: creator).counting()
    let cuts = statements.removals.filter {
      creator != nil && speakers.speaker(of: $0, as: $0.content.by) == creator && $0.content.user != creator
    }
    self.cuts = Dictionary(grouping: cuts, by: \.content.user).mapValues { $0.map { speakers.word(of: $0.id) } }
    doubtful = Self.doubtful(statements, speakers, removed: Set(cuts.map(\.content.user)))
  }

  /// Of the member's changes in the room, by what ever allowed them; nil: nothing did.
  func limits(for user: Text, of replica: ReplicaID) -> [ChainPosition] {
    if user == creator { return [.unbounded] }
    return invitations[user, default: []].map { $0.limit(of: replica, in: room) }
  }

  func level(of user: Text) -> AccessLevel {
    if user == creator { return .manage }
    return invitations[user, default: []].contains(where: \.isOpen) ? .write : .none
  }

  func floor(for user: Text, of replica: ReplicaID) -> UInt64 {
    if doubtful.contains(user) { return 0 }
    return cuts[user, default: []].map { $0.bound(of: replica, in: room).sequence }.min() ?? .max
  }

  /// Everyone ever invited by one who was ever removed or ended, or by one so invited: this only grows.
  private static func doubtful(
    _ statements: RoomStatements, _ speakers: RoomSpeakers, removed: Set<Text>
  ) -> Set<Text> {
    var invited: [Text: Set<Text>] = [:]
    for invitation in statements.invitations {
      guard let by = speakers.speaker(of: invitation, as: invitation.content.by) else { continue }
      invited[by, default: []].insert(invitation.content.user)
    }
    var doubtful: Set<Text> = []
    var waiting = invited.keys.filter { removed.contains($0) || speakers.everEnded.contains($0) }
    while let user = waiting.popLast() {
      for other in invited[user, default: []] where doubtful.insert(other).inserted { waiting.append(other) }
    }
    return doubtful
  }
}

extension RoomRights {
  /// The room while it is worked out which invitations count.
  private struct Draft {
    let room: Text
    let creator: Text?
    private var invitations: [(by: Text, signed: Signed<Statement.Invitation>)] = []
    private var removals: [Text: [Signed<Statement.Removal>]] = [:]
    private var leaves: [Text: [Digest]] = [:]
    private let speakers: RoomSpeakers

    init(_ room: Text, _ statements: RoomStatements, _ speakers: RoomSpeakers, creator: Text?) {
      (self.room, self.creator, self.speakers) = (room, creator, speakers)
      guard let creator else { return }
      for removal in statements.removals where removal.content.user != creator {
        guard speakers.user(of: removal, as: removal.content.by, in: room) == creator else { continue }
        removals[removal.content.user, default: []].append(removal)
      }
      for leave in statements.leaves
      where speakers.user(of: leave, as: leave.content.by, in: room) == leave.content.user {
        leaves[leave.content.user, default: []].append(leave.id)
      }
      invitations = statements.invitations.compactMap { signed in
        speakers.user(of: signed, as: signed.content.by, in: room).map { ($0, signed) }
      }
    }

    /// An invitation counts if its issuer is the creator, or has one that counts and whose closers all list this one.
    func counting() -> [Text: [Invitation]] {
      var counting: [Text: [Invitation]] = [:]
      var waiting = invitations
      var grew = true
      while grew {
        grew = false
        waiting.removeAll { by, signed in
          let isCarried = counting[by, default: []].contains { carrier in
            carrier.closers.allSatisfy { $0.leaves(signed.id, of: signed.issuer, in: room) }
          }
          guard by == creator || isCarried else { return false }
          counting[signed.content.user, default: []].append(invitation(signed))
          grew = true
          return true
        }
      }
      return counting
    }

    /// A removal closes every invitation of that user that had not seen it; a later one stands.
    private func invitation(_ signed: Signed<Statement.Invitation>) -> Invitation {
      let user = signed.content.user
      let known = speakers.seen(by: signed.id)
      return Invitation(
        id: signed.id,
        closers: removals[user, default: []].filter { !known.contains($0.id) }
          .map { Narrowing(id: $0.id, word: speakers.word(of: $0.id)) },
        isLeft: leaves[user, default: []].contains { !known.contains($0) })
    }
  }
}

/// For whom devices speak in rooms.
struct RoomSpeakers: Sendable {
  private let members: MemberTable
  private let rights: RightsTable
  private(set) var index: StatementIndex
  private let entitled: EntitledDevices
  /// Users of memberships that anyone entitled ever ended.
  let everEnded: Set<Text>

  init(_ index: StatementIndex, _ members: MemberTable, _ rights: RightsTable, _ entitled: EntitledDevices) {
    (self.index, self.members, self.rights, self.entitled) = (index, members, rights, entitled)
    everEnded = Set(
      index.memberships.lazy.filter { !entitled.narrowings(of: .membership($0.id)).isEmpty }.map(\.content.user))
  }

  /// Under the same statements of the fleet.
  func renewing(rooms scopes: Set<Text>, _ set: AdmittedStatements) -> RoomSpeakers? {
    guard let index = index.renewing(rooms: scopes, set) else { return nil }
    var renewed = self
    renewed.index = index
    return renewed
  }

  func word(of id: Digest) -> ListedWord { index.word(of: id) }

  /// What a room statement had seen, with what that had seen.
  func seen(by id: Digest) -> Set<Digest> {
    var seen: Set<Digest> = []
    var waiting = index.seen[id, default: []]
    while let next = waiting.popLast() {
      if seen.insert(next).inserted { waiting += index.seen[next, default: []] }
    }
    return seen
  }

  /// The user of the membership that a statement names, where its issuer is that membership's device.
  func speaker<Content>(of signed: Signed<Content>, as membership: Digest) -> Text? {
    guard let named = index.statedMemberships[membership], named.device == signed.issuer,
      entitled.contains(named.issuer)
    else { return nil }
    return named.user
  }

  /// The same where the membership counts, still carries the statement, and has a user.
  func user<Content>(of signed: Signed<Content>, as membership: Digest, in room: Text) -> Text? {
    guard let member = members.members[membership], member.device == signed.issuer, !member.user.utf8.isEmpty else {
      return nil
    }
    let stands = rights.narrowings(of: .membership(membership)).allSatisfy {
      $0.leaves(signed.id, of: signed.issuer, in: room)
    }
    return stands ? member.user : nil
  }
}
