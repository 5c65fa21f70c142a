/// Everything that follows from a *set* of statements: no clock, no order of arrival (rule C10).
///
/// A value: whoever needs rights on another thread holds a snapshot. Signatures, encodings and the fleet of statements
/// are checked before they come here. Building costs O(n log n) in the number of statements, questions a few look-ups.
package struct Authority: Sendable {
  private let tables: Tables

  /// By reference: every partition's log holds its authority.
  private final class Tables: Sendable {
    let root: PublicKey
    let members: MemberTable
    let rights: RightsTable
    let speakers: RoomSpeakers
    let rooms: [Text: RoomRights]
    let floors: FloorTable
    let isInDoubt: Bool
    let entered: [InvitationID: [PublicKey]]
    let compromised: Set<PublicKey>
    let admitted: AdmittedStatements
    let certificate: ReplicaCertificate
    let limit: Int
    let levels = LevelMemo()

    init(
      _ admitted: AdmittedStatements, root: PublicKey, limit: Int, certificate: @escaping ReplicaCertificate
    ) {
      let index = StatementIndex(admitted, certificate: certificate)
      let members = MemberTable(index, admitted, root: root)
      let rights = RightsTable(index, members)
      let entitled = EntitledDevices(index, members)
      let speakers = RoomSpeakers(index, members, rights, entitled)
      self.speakers = speakers
      rooms = Dictionary(uniqueKeysWithValues: index.rooms.map { ($0.key, RoomRights($0.key, $0.value, speakers)) })
      floors = FloorTable(index, entitled, full: admitted.fullScopes)
      isInDoubt = index.unread.contains { entitled.contains($0.issuer) }
      entered = Authority.entered(admitted, root: root)
      compromised = Authority.compromised(index, members, rights)
      (self.root, self.members, self.rights, self.admitted) = (root, members, rights, admitted)
      (self.certificate, self.limit) = (certificate, limit)
    }

    /// With more statements, where these move nothing but their rooms: all else is taken over, since anybody may make rooms by
    /// the thousand. Nil where that cannot be said of them.
    init?(_ before: Tables, adding more: [Statement]) {
      let scopes = Set(more.map(\.scope))
      guard more.allSatisfy(\.movesItsRoomAlone),
        let admitted = before.admitted.adding(ofRooms: more, root: before.root, limit: before.limit),
        let speakers = before.speakers.renewing(rooms: scopes, admitted)
      else { return nil }
      var rooms = before.rooms
      for scope in scopes { rooms[scope] = speakers.index.rooms[scope].map { RoomRights(scope, $0, speakers) } }
      (self.rooms, self.speakers, self.admitted) = (rooms, speakers, admitted)
      (root, members, rights, floors) = (before.root, before.members, before.rights, before.floors)
      (isInDoubt, entered, compromised) = (before.isInDoubt, before.entered, before.compromised)
      (certificate, limit) = (before.certificate, before.limit)
    }
  }

  package var root: PublicKey { tables.root }
  var members: MemberTable { tables.members }
  var rights: RightsTable { tables.rights }
  var rooms: [Text: RoomRights] { tables.rooms }
  var floors: FloorTable { tables.floors }
  /// Somebody who might grant rights said something that this build cannot read: more may be allowed than is known here,
  /// so what lacks a right is held, and contexts received ask for nothing (rule C27).
  package var isInDoubt: Bool { tables.isInDoubt }
  var entered: [InvitationID: [PublicKey]] { tables.entered }
  /// Devices of which an end that counts says that somebody else may have their key.
  var compromised: Set<PublicKey> { tables.compromised }
  var levels: LevelMemo { tables.levels }
  private var admitted: AdmittedStatements { tables.admitted }
  private var certificate: ReplicaCertificate { tables.certificate }
  /// How many statements of one device count in one scope (rule C26).
  var limit: Int { tables.limit }

  /// `limit`: how many statements of one device count in one scope.
  package init(
    root: PublicKey, statements: some Collection<Statement>, limit: Int = AdmittedStatements.limit,
    certificate: @escaping ReplicaCertificate
  ) {
    let admitted = AdmittedStatements(statements, root: root, limit: limit)
    tables = Tables(admitted, root: root, limit: limit, certificate: certificate)
  }

  private init(_ tables: Tables) { self.tables = tables }

  /// With the protocol's own replica ids: ``ReplicaID/derived(device:nonce:_:)``.
  package init(
    root: PublicKey, statements: [Statement] = [], limit: Int = Allowance.statementLimit, hash: @escaping HashFunction
  ) {
    self.init(root: root, statements: statements, limit: limit) { declaration, issuer in
      let device = DeviceID.derived(from: issuer, hash)
      return ReplicaID.derived(device: device, nonce: declaration.nonce, hash) == declaration.replica
    }
  }

  /// The same authority where nothing of `more` is new.
  package func adding(_ more: some Sequence<Statement>) -> Authority {
    let new = more.filter { !admitted.holds($0.id) }
    guard !new.isEmpty else { return self }
    if let grown = Tables(tables, adding: new) { return Authority(grown) }
    return Authority(root: root, statements: Array(admitted.all.values) + new, limit: limit, certificate: certificate)
  }

  /// As if a device had said nothing but what is heard of it. The same authority where that is all.
  package func hearing(from device: PublicKey, only isHeard: (Digest) -> Bool) -> Authority {
    let heard = admitted.all.values.filter { $0.issuer != device || isHeard($0.id) }
    guard heard.count < admitted.all.count else { return self }
    return Authority(root: root, statements: heard, limit: limit, certificate: certificate)
  }

  package var count: Int { admitted.all.count }
  /// Of the fleet's scope, each behind all that it goes on from or names.
  package var fleetStatements: [Statement] { statements(of: "") }
  /// Of one scope, each behind all that it goes on from or names.
  package func statements(of scope: Text) -> [Statement] {
    admitted.orderInScopes[scope, default: []].compactMap { admitted.all[$0] }
  }
  /// Statements of a room that statements of the fleet list. Whether one of these is here decides what counts of all that
  /// it goes on from.
  func listed(in room: Text) -> Set<Digest> { tables.speakers.index.listedInRooms[room, default: []] }
  package func holds(_ id: Digest) -> Bool { admitted.holds(id) }
  /// Root, or a device that root ever made an admin.
  func wasEverAdmin(_ device: PublicKey) -> Bool { admitted.everAdmins.contains(device) }
  /// Devices that have used up what they may say in the fleet's scope, so that replicas which they declared may be declared by
  /// nothing that is here.
  var fullDevices: Set<PublicKey> { admitted.fullDevices }
  /// Of every scope, in no order.
  var allStatements: some Collection<Statement> { admitted.all.values }
  package subscript(id: Digest) -> Statement? { admitted.all[id] }

  /// What the issuer's next statement of a scope goes on from: of those here the highest sequence, then the lowest id
  /// (rule C10); nil before its first.
  package func lastStatement(of issuer: PublicKey, in scope: Text = "") -> Statement.Link? {
    let own = statements(of: scope).lazy.filter { $0.issuer == issuer }
    return own.min { ($1.sequence, $0.id) < ($0.sequence, $1.id) }
      .map { Statement.Link(sequence: $0.sequence, id: $0.id) }
  }

  /// Digest over the sorted ids of the fleet's scope: equal sets, and only they, have equal digests.
  package func digest(_ hash: HashFunction) -> Digest { Authority.digest(of: fleetStatements, hash) }

  static func digest(of statements: [Statement], _ hash: HashFunction) -> Digest {
    digest(of: statements.map(\.id), hash)
  }

  package static func digest(of ids: [Digest], _ hash: HashFunction) -> Digest {
    var input = DomainTag.authority.bytes
    input.reserveCapacity(DomainTag.byteCount + ids.count * Digest.byteCount)
    for id in ids.sorted() { id.append(to: &input) }
    return Digest.of(input, hash)
  }
}
