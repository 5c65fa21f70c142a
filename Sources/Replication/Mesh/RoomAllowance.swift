/// How much a node keeps of the statements of rooms. Everybody may make rooms, and nobody sees them all, so that no rule
/// could say which of a device's rooms count: what comes first is kept, and what is beyond is passed over.
struct RoomAllowance: Sendable {
  /// Of one device, over all rooms.
  static let statementsPerDevice = 4_096
  static let bytesPerDevice = AdmittedStatements.byteLimit
  static let statementsPerRoom = 16_384
  static let statements = 65_536

  private struct Share {
    var count = 0
    var bytes = 0
  }

  private(set) var count = 0
  private var devices: [PublicKey: Share] = [:]
  private var rooms: [Text: Int] = [:]

  func isSpent(by device: PublicKey) -> Bool {
    guard let share = devices[device] else { return false }
    return share.count >= RoomAllowance.statementsPerDevice || share.bytes >= RoomAllowance.bytesPerDevice
  }

  /// Counts the statement where there is room for it.
  mutating func take(_ statement: Statement) -> Bool {
    guard !isSpent(by: statement.issuer), count < RoomAllowance.statements,
      rooms[statement.scope, default: 0] < RoomAllowance.statementsPerRoom
    else { return false }
    add(statement)
    return true
  }

  mutating func add(_ statement: Statement) {
    count += 1
    rooms[statement.scope, default: 0] += 1
    devices[statement.issuer, default: Share()].count += 1
    devices[statement.issuer, default: Share()].bytes += statement.encoded.count
  }

  mutating func remove(_ statement: Statement) {
    count -= 1
    rooms[statement.scope, default: 1] -= 1
    if rooms[statement.scope] == 0 { rooms[statement.scope] = nil }
    devices[statement.issuer]?.count -= 1
    devices[statement.issuer]?.bytes -= statement.encoded.count
    if devices[statement.issuer]?.count == 0 { devices[statement.issuer] = nil }
  }
}
