import Replication

/// The invitations of this device: open ones, and closed ones for a while, so that who comes too late hears why.
package struct InvitationBook: Sendable {
  private var bySerial: [UInt64: Invitation] = [:]

  package static let openLimit = 1_000
  /// Of closed ones the latest, however many were given and taken back.
  static let closedLimit = 1_000
  /// After the end of an invitation.
  static let keptMilliseconds: Int64 = 30 * 24 * 3_600 * 1_000

  init(_ invitations: [Invitation]) {
    bySerial = Dictionary(invitations.map { ($0.serial, $0) }) { first, _ in first }
  }

  package subscript(serial: UInt64) -> Invitation? { bySerial[serial] }

  package func open(at wallMilliseconds: Int64) -> [Invitation] {
    bySerial.values.filter { $0.isOpen(at: wallMilliseconds) }.sorted { $0.serial < $1.serial }
  }

  mutating func put(_ invitation: Invitation) { bySerial[invitation.serial] = invitation }
  mutating func remove(_ serial: UInt64) { bySerial[serial] = nil }

  var lastSerial: UInt64 { bySerial.keys.max() ?? 0 }

  /// Closed so long ago that nobody will ask any more, and the first of more closed ones than are kept.
  func forgotten(at wallMilliseconds: Int64) -> [UInt64] {
    let closed = bySerial.values.filter { !$0.isOpen(at: wallMilliseconds) }.map(\.serial).sorted()
    var forgotten = Set(closed.dropLast(InvitationBook.closedLimit))
    let (limit, overflow) = wallMilliseconds.subtractingReportingOverflow(InvitationBook.keptMilliseconds)
    if !overflow { forgotten.formUnion(bySerial.values.filter { $0.isExpired(at: limit) }.map(\.serial)) }
    // The last one keeps its number from being given again.
    forgotten.remove(lastSerial)
    return forgotten.sorted()
  }
}
