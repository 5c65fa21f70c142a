/// The room that a node has for statements of the fleet: ``Statement/countLimit``, first come, first served, but that members
/// who were never admins leave the last ``reserve`` of it to root, to admins and to whoever has said little. So a few members
/// who spend their allowances cannot keep others from being let in, or from declaring a replica, nor an admin's word from coming in
/// with what it names of them.
struct FleetRoom {
  private let authority: Authority
  private var left: Int
  /// How many each issuer has here; counted only where the rest is reserved.
  private var said: [PublicKey: Int]?

  /// What an admin names of one device, and the last of all.
  static let reserve = AdmittedStatements.limit + last
  /// So much of it what is named leaves to root, admins and whoever has said little: the word itself comes behind what it names.
  static let last = 256
  /// What a device may have said and still say more in the reserve: far more than declaring its replicas takes.
  static let littleSaid = 16

  init(_ authority: Authority, held: Int) { (self.authority, left) = (authority, Statement.countLimit - held) }

  /// False where there is no room for it.
  ///
  /// - Parameter isNamed: by what an admin says and comes with it.
  mutating func take(_ statement: Statement, isNamed: Bool) -> Bool {
    guard left > 0 else { return false }
    guard left > FleetRoom.reserve || isNamed && left > FleetRoom.last || takesReserve(statement.issuer) else {
      return false
    }
    left -= 1
    said?[statement.issuer, default: 0] += 1
    return true
  }

  private mutating func takesReserve(_ issuer: PublicKey) -> Bool {
    guard !authority.members.isEverAdmin(issuer) else { return true }
    let counted = said ?? Dictionary(authority.fleetStatements.map { ($0.issuer, 1) }, uniquingKeysWith: +)
    said = counted
    return counted[issuer, default: 0] < FleetRoom.littleSaid
  }
}
