import Engine
import Identity
import Replication

/// Says between frames what only a later build knows, where a test has the node run as one. For the engine's thread.
final class NewsTeller {
  private let formats: KnownFormats
  private let log: NodeLog
  /// Whom a session is with, and what it said of itself; nil before that.
  private let peer: (SessionID) -> (hello: Hello, device: DeviceID)?
  private var frames: [SessionID: Int] = [:]

  /// The first as soon as the peer has said what it reads, and one before every so many frames then.
  private static let pace = 4

  init(_ formats: KnownFormats, _ log: NodeLog, peer: @escaping (SessionID) -> (hello: Hello, device: DeviceID)?) {
    (self.formats, self.log, self.peer) = (formats, log, peer)
  }

  /// Frames to go out before the next.
  func due(on session: SessionID) -> [[UInt8]] {
    guard let (hello, device) = peer(session) else { return [] }
    let count = frames[session, default: 0]
    frames[session] = count &+ 1
    guard count % NewsTeller.pace == 0 else { return [] }
    return LaterNews.numbers(of: formats, to: hello).map { number in
      log.write(.debug, "says what a later build knows", [("message", "\(number)"), ("device", device.shortText)])
      return LaterNews.frame(number)
    }
  }
}
