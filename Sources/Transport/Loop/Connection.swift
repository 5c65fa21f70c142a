import Links
import Replication

/// The IO thread's view of one connection. Decides nothing: the loop does.
final class Connection {
  enum Phase: Equatable {
    case connecting
    case handshaking
    case unauthenticated
    case authenticated
    /// Asked to close: writes what waits, says the end, waits for the peer's. Nothing is delivered any more.
    case closing(endSent: Bool)
  }

  let number: UInt64
  let origin: ConnectionOrigin
  var phase: Phase
  var remote: SocketAddress
  var descriptor: Descriptor?
  /// Nil until one is tried.
  var path: LinkPath?
  /// Where somebody pays for its bytes.
  var account: SocketAccount?
  var tls: TLSSession?
  /// Where to try next when this address of a dialled name leads nowhere.
  var remainingAddresses: [SocketAddress]
  let startedAt: MonotonicTime
  var wasOpened = false
  var countsAsUnauthenticated = false

  var assembler = FrameAssembler()
  /// Input of an unauthenticated peer that must wait for its authentication; at most one TLS record.
  var heldInput: [UInt8] = []
  /// Of its unfinished frame, as the loop counts them.
  var unfinishedByteCount = 0
  /// When something of a frame came last.
  var lastInput: MonotonicTime
  var framesDelivered = 0
  var unauthenticatedInput = 0
  var isPaused = false

  var outgoing = SendQueue()
  var pace: SendPace
  /// Bytes, when the kernel was asked last.
  var acknowledged: UInt64 = 0
  var isWriteBlocked = false
  var lastWriteProgress: MonotonicTime
  /// It was at rest before what was said last, and nothing has come since.
  var breaksRest = false

  var interest: Poller.Interest = []
  var phaseDeadline: MonotonicTime?

  init(
    _ number: UInt64, _ origin: ConnectionOrigin, phase: Phase, remote: SocketAddress,
    remainingAddresses: [SocketAddress] = [], now: MonotonicTime, _ configuration: TransportConfiguration
  ) {
    pace = SendPace(configuration)
    (self.number, self.origin, self.phase, self.remote) = (number, origin, phase, remote)
    (self.remainingAddresses, self.startedAt) = (remainingAddresses, now)
    (lastWriteProgress, lastInput) = (now, now)
  }

  var id: ConnectionID { ConnectionID(number: number) }

  var isOpen: Bool { phase == .unauthenticated || phase == .authenticated }

  var isClosing: Bool {
    if case .closing = phase { return true }
    return false
  }

  var wantsInput: Bool { (isOpen && !isPaused && heldInput.isEmpty) || isClosing }

  /// What a frame may measure: now, and once the peer is authenticated. A first frame that is too large can only come
  /// from a stranger; a later one may come from a peer that trusts us already and could not know that we are slower.
  func frameLimits(_ configuration: TransportConfiguration) -> (now: Int, later: Int) {
    guard phase != .authenticated else { return (configuration.frameByteLimit, configuration.frameByteLimit) }
    guard framesDelivered > 0 else {
      return (configuration.unauthenticatedFrameByteLimit, configuration.unauthenticatedFrameByteLimit)
    }
    let isUsedUp = unauthenticatedInput >= configuration.unauthenticatedInputByteLimit
    return (isUsedUp ? 0 : configuration.unauthenticatedFrameByteLimit, configuration.frameByteLimit)
  }

  /// When the loop must look at this connection even if nothing happens.
  func deadline(_ configuration: TransportConfiguration) -> MonotonicTime? {
    let isAwaited = wasOpened && !outgoing.isEmpty
    let stall = isAwaited ? lastWriteProgress.advanced(byMilliseconds: configuration.stallTimeoutMilliseconds) : nil
    guard let stall, let phaseDeadline else { return stall ?? phaseDeadline }
    return min(stall, phaseDeadline)
  }
}
