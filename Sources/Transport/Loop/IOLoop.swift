import Glibc
import Kernel
import Links
import Replication

/// The IO thread: epoll, TLS and framing of all connections. Everything in it belongs to that thread alone.
final class IOLoop {
  /// One TLS record: libssl writes no more at once in partial-write mode, and reads no more either.
  static let recordByteCount = 16 * 1024
  /// Records per connection and turn, so that one fast peer does not keep the others waiting.
  static let recordsPerTurn = 64
  /// Shows a suspension (K7) after this much at the latest, without any traffic.
  static let heartbeatMilliseconds: UInt64 = 10_000

  let configuration: TransportConfiguration
  let handler: any TransportHandler
  let mailbox: Mailbox
  let poller: Poller
  let context: TLSContext
  let meter: (any LinkMeter)?
  private let beat: ThreadBeat

  var connections: [UInt64: Connection] = [:]
  /// Connections to look at again without an event of their socket: input that libssl holds, output that was asked for.
  var waitingInput: Set<UInt64> = []
  var waitingOutput: Set<UInt64> = []
  /// Connections with enough under way in the kernel, to look at again when the timer fires.
  var held: Set<UInt64> = []
  var admission: Admission
  /// Bytes of frames that have not come to their end, over all connections.
  var unfinishedByteCount = 0
  var listeners: [UInt64: Descriptor] = [:]
  var areListenersMuted = false
  var paths = LinkPaths()
  /// Connections with an account, and when to look at them: nil while nothing happens on any.
  var metered: Set<UInt64> = []
  var nextLookAt: MonotonicTime?
  var now = ElapsedClock.now()
  private var suspended = ElapsedClock.suspended()
  private var isStopping = false

  let outBuffer = UnsafeMutableRawBufferPointer.allocate(byteCount: recordByteCount, alignment: 16)
  let inBuffer = UnsafeMutableRawBufferPointer.allocate(byteCount: recordByteCount, alignment: 16)

  init(
    _ configuration: TransportConfiguration, _ context: TLSContext, _ mailbox: Mailbox, _ handler: any TransportHandler,
    _ meter: (any LinkMeter)?, _ beat: ThreadBeat
  ) throws(SystemError) {
    self.configuration = configuration
    self.context = context
    self.mailbox = mailbox
    self.handler = handler
    self.meter = meter
    self.beat = beat
    self.poller = try Poller(waking: mailbox.signal)
    self.admission = Admission(configuration)
  }

  deinit {
    outBuffer.deallocate()
    inBuffer.deallocate()
  }

  func run() {
    var maySleep = false
    while !isStopping {
      poller.wakeAt(now.advanced(byMilliseconds: IOLoop.heartbeatMilliseconds))
      turn(block: maySleep)
      maySleep = mailbox.maySleep(workWaits: !waitingInput.isEmpty || !waitingOutput.isEmpty)
    }
    closeEverything()
    beat.rests()
  }

  private func turn(block: Bool) {
    var events: [Poller.Event] = []
    beat.rests()
    let timerFired = poller.wait(block: block) { events.append($0) }
    beat.works()
    now = ElapsedClock.now()
    // Before the events: what a caller asked for before the peer sent something counts for that (`authenticate`).
    performCommands()
    dropAllAfterSuspension()
    let again = waitingInput
    waitingInput = []
    for event in events { handle(event) }
    for number in again { connections[number].map(readInput) }
    if timerFired {
      expire()
      flushHeld()
    }
    performCommands()
    flushWaiting()
  }

  private func performCommands() {
    for command in mailbox.takeCommands() { perform(command) }
  }

  private func handle(_ event: Poller.Event) {
    if let listener = listeners[event.token] { return acceptAll(from: listener) }
    guard let connection = connections[event.token] else { return }
    noteTraffic(connection)
    switch connection.phase {
    case .connecting: finishConnect(connection)
    case .handshaking: continueHandshake(connection)
    case .unauthenticated, .authenticated, .closing:
      if event.isWritable { flush(connection) }
      guard connections[event.token] === connection else { return }
      if connection.wantsInput, event.isReadable || event.isBroken {
        readInput(connection)
      } else if event.isBroken {
        end(connection, .failed(SystemError("socket", code: brokenCode(connection)).description))
      }
    }
  }

  private func brokenCode(_ connection: Connection) -> Int32 {
    let code = connection.descriptor.map { TCP.pendingError($0.number) } ?? 0
    return code == 0 ? ECONNRESET : code
  }

  private func perform(_ command: Mailbox.Command) {
    switch command {
    case .listen(let socket): startListening(socket.descriptor)
    case .dial(let number, let tag, let addresses): startDial(number, tag: tag, addresses)
    case .send(let number, let frames): connections[number].map { queue(frames, on: $0) }
    case .close(let number, let afterFlush): connections[number].map { close($0, afterFlush: afterFlush) }
    case .authenticate(let number): connections[number].map(authenticate)
    case .keepShort(let number): connections[number].map(keepShort)
    case .pauseReading(let number): connections[number].map { setPaused($0, true) }
    case .resumeReading(let number): connections[number].map { setPaused($0, false) }
    case .closeStranded: closeStranded()
    case .reviewLinks: reviewLinks()
    case .stop: isStopping = true
    }
  }

  private func flushWaiting() {
    let numbers = waitingOutput
    waitingOutput = []
    for number in numbers { connections[number].map(flush) }
  }

  /// After a suspension every peer has given its end up, and TCP would notice only much later (K7).
  private func dropAllAfterSuspension() {
    let reading = ElapsedClock.suspended()
    defer { suspended = reading }
    guard reading > suspended + IOLoop.heartbeatMilliseconds else { return }
    for connection in Array(connections.values) { end(connection, .suspended) }
  }

  /// What was sent from an address that this host no longer has is never answered; TCP would notice only much later.
  private func closeStranded() {
    let own = Set(NetworkInterfaces.addresses(ofInterfacesDown: true))
    for connection in Array(connections.values) where connection.wasOpened {
      guard let local = connection.descriptor.flatMap({ TCP.localAddress($0.number) }), !own.contains(local.host) else {
        continue
      }
      end(connection, .stranded)
    }
  }

  private func closeEverything() {
    for listener in listeners.values { poller.remove(listener.number) }
    listeners = [:]
    for connection in Array(connections.values) {
      if connection.isOpen, !connection.isWriteBlocked { _ = connection.tls?.sendCloseNotify() }
      end(connection, .stopped)
    }
  }

  /// What the kernel shall tell about this connection.
  func updateInterest(_ connection: Connection, _ interest: Poller.Interest) {
    guard interest != connection.interest, let descriptor = connection.descriptor else { return }
    connection.interest = interest
    poller.change(descriptor.number, token: connection.number, interest)
  }

  func updateInterest(_ connection: Connection) {
    var interest: Poller.Interest = []
    if connection.wantsInput { interest.insert(.input) }
    if connection.isWriteBlocked { interest.insert(.output) }
    updateInterest(connection, interest)
  }

  func setDeadline(_ connection: Connection, _ time: MonotonicTime?) {
    connection.phaseDeadline = time
    if let time { poller.wakeAt(time) }
  }

  /// Ends a connection at once and tells the handler.
  func end(_ connection: Connection, _ reason: CloseReason) {
    release(connection)
    if connection.wasOpened {
      handler.closed(connection.id, reason: reason)
    } else if case .dialled(let tag) = connection.origin {
      handler.dialFailed(connection.id, tag: tag, reason: .cancelled)
    }
  }

  /// Gives back everything that the connection holds, without a word to the handler.
  func release(_ connection: Connection) {
    guard connections.removeValue(forKey: connection.number) != nil else { return }
    noteNoLongerUnauthenticated(connection)
    settleAccount(connection)
    noteUnfinished(0, connection)
    if let descriptor = connection.descriptor { poller.remove(descriptor.number) }
    connection.tls = nil
    connection.descriptor = nil
    waitingInput.remove(connection.number)
    waitingOutput.remove(connection.number)
    held.remove(connection.number)
    mailbox.noteGone(connection.number)
  }
}
