import TestSupport
import Testing

@testable import Replication

@Suite struct DialPolicyRestTests {
  /// A policy that is ticked at every turn, some of what it knows made up by chance.
  private struct World {
    let looksAlways: Bool
    var policy = DialPolicy(thisDevice: World.device(0))
    var (chance, random): (SplitMix64, SplitMix64)
    var now: UInt64 = 1_000_000
    private(set) var looks = 0

    init(seed: UInt64, looksAlways: Bool) {
      self.looksAlways = looksAlways
      (chance, random) = (SplitMix64(seed: seed), SplitMix64(seed: seed + 1))
    }

    static func device(_ number: UInt32) -> DeviceID { DeviceID(Digest(words: (UInt64(100 + number), 0, 0, 0))) }
    static func socket(_ number: UInt32) -> SocketAddress { SocketAddress(.ipv4(0x0a00_0000 + number), port: 7_000) }

    /// What is dialled and given up at this turn.
    mutating func turn() -> [String] {
      now += UInt64.random(in: 1...400, using: &chance)
      let happens = Int.random(in: 0..<8, using: &chance) == 0
      let dials = happens ? handle(event()) : []
      return dials + tick()
    }

    private mutating func tick() -> [String] {
      if looksAlways { policy.quietUntil = nil }
      if policy.quietUntil.map({ $0.milliseconds <= now }) ?? true { looks += 1 }
      return handle(.tick)
    }

    private mutating func handle(_ event: DialPolicy.Event) -> [String] {
      var done = policy.handle(event, now: MonotonicTime(milliseconds: now), using: &random).map {
        "\(now) dials \($0)"
      }
      while let dropped = policy.takeDrop()?.device {
        done.append("\(now) drops \(dropped)")
        done += handle(.disconnected(dropped))
      }
      return done
    }

    private mutating func event() -> DialPolicy.Event {
      let number = UInt32.random(in: 0..<20, using: &chance)
      let address = PeerAddress.socket(World.socket(number))
      switch Int.random(in: 0..<16, using: &chance) {
      case 0...3:
        let matches = Int.random(in: 0..<4, using: &chance) > 0
        return .found(instance: Text("n\(number)"), addresses: [World.socket(number)], tagMatches: matches)
      case 4: return .lost(instance: Text("n\(number)"))
      case 5, 6: return .dialFailed(address)
      case 7: return .dialRefused(address)
      case 8, 9: return .identified(address, World.device(number))
      case 10...13: return .connected(World.device(number), outgoing: Bool.random(using: &chance))
      case 14: return .disconnected(World.device(number))
      default: return number == 0 ? .networkChanged : .remembered(World.device(number), [World.socket(number)])
      }
    }
  }

  @Test(
    "a policy that rests until something is due dials and gives up what one does that looks at every turn",
    arguments: 0..<40)
  func rest(seed: UInt64) {
    var always = World(seed: seed, looksAlways: true)
    var resting = World(seed: seed, looksAlways: false)
    for _ in 0..<2_000 { #expect(resting.turn() == always.turn()) }
    #expect(resting.policy.entries == always.policy.entries)
    #expect(resting.looks < always.looks / 2)
  }
}
