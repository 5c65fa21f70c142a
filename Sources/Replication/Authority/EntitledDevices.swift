/// Devices that were ever root, admin or manager, and every narrowing that they ever signed, counting now or not. Both only
/// grow as statements arrive, so that what a context may require only falls (rule C8).
struct EntitledDevices: Sendable {
  private let devices: Set<PublicKey>
  private let narrowings: [Statement.End.Target: [ListedEnd]]

  struct ListedEnd: Sendable {
    let word: ListedWord
  }

  init(_ index: StatementIndex, _ members: MemberTable) {
    let admitted = index.memberships.filter { members.isEverAdmin($0.issuer) }
    let managing = index.grants.filter { $0.content.level == .manage && members.isEverAdmin($0.issuer) }
    let subjects = Set(managing.map(\.content.subject))
    var devices: Set<PublicKey> = [members.root]
    for membership in admitted {
      let isManager = !subjects.isDisjoint(with: membership.content.subjects)
      if isManager || members.isEverAdmin(membership.content.device) { devices.insert(membership.content.device) }
    }
    self.devices = devices
    let owners = Dictionary(grouping: index.replicas, by: \.content.replica).mapValues { Set($0.map(\.issuer)) }
    var narrowings: [Statement.End.Target: [ListedEnd]] = [:]
    for end in index.ends {
      var isOwn = false
      if case .replica(let replica) = end.content.target { isOwn = owners[replica]?.contains(end.issuer) == true }
      guard isOwn || devices.contains(end.issuer) else { continue }
      narrowings[end.content.target, default: []].append(ListedEnd(word: index.word(of: end.id)))
    }
    self.narrowings = narrowings
  }

  func contains(_ device: PublicKey) -> Bool { devices.contains(device) }

  func narrowings(of target: Statement.End.Target) -> [ListedWord] { narrowings[target, default: []].map(\.word) }
}
