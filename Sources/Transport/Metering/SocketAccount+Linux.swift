import Links

/// What of one socket's cost has been charged. Each look charges what came since the one before.
struct SocketAccount {
  let path: LinkPath
  private let cost: SocketCost
  private let meter: any LinkMeter
  private var charged: UInt64 = 0
  private var last = TCPNumbers()
  private var sinceLook = 0
  /// The kernel throws away what it holds, and says one word.
  var endsByReset = false

  /// Of frames, after which there is a look at once.
  private static let lookByteCount = 64 * 1024

  init(_ path: LinkPath, isAccepted: Bool, _ meter: any LinkMeter) {
    (self.path, self.meter, cost) = (path, meter, SocketCost(path, isAccepted: isAccepted))
  }

  /// What came before is not charged: nobody paid for the link then.
  mutating func begin(at numbers: TCPNumbers) { (charged, last) = (cost.byteCount(numbers), numbers) }

  /// Answers whether a look is due.
  mutating func note(_ byteCount: Int) -> Bool {
    sinceLook += byteCount
    return sinceLook >= SocketAccount.lookByteCount
  }

  /// Answers whether something may come by itself before the socket is used again.
  mutating func look(_ numbers: TCPNumbers) -> Bool {
    defer { (last, sinceLook) = (numbers, 0) }
    charge(upTo: cost.byteCount(numbers))
    return !numbers.isQuiet || numbers != last
  }

  /// The last look, before the socket is closed.
  mutating func settle(_ numbers: TCPNumbers) {
    let end = endsByReset ? cost.byteCountOfReset : cost.byteCountOfEnd(numbers)
    charge(upTo: cost.byteCount(numbers) + end)
  }

  /// The same by what the last look showed, where the socket cannot be looked at any more.
  mutating func settle(farewellByteCount: UInt64) {
    guard last.hasEndToSay else { return }
    charge(upTo: charged + farewellByteCount + cost.byteCountOfEnd(last))
  }

  private mutating func charge(upTo byteCount: UInt64) {
    guard byteCount > charged else { return }
    meter.charge(byteCount - charged, on: path)
    charged = byteCount
  }
}
