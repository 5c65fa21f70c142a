import Kernel
import Links
import Replication

/// Framed, mutually authenticated TLS 1.3 connections between devices, on one IO thread.
///
/// A frame is a length (4 bytes, big-endian) and a body of 1 byte to 16 KiB before, 4 MiB + 64 KiB after
/// ``authenticate(_:)``. Methods may be called from any thread, the handler's calls included; they return at once, and
/// the handler tells what came of them. The handler is kept alive until ``stop()``.
package final class SecureTransport: Sendable {
  /// What the length of a frame adds to it.
  package static let frameLengthByteCount = FrameAssembler.lengthByteCount
  /// What a frame that waits takes beside its bytes, roughly: each is an allocation of its own.
  package static let frameOverheadByteCount = 64
  /// Longer than one turn of the loop with every connection busy.
  private static let stopTimeoutMilliseconds: UInt64 = 10_000

  private let configuration: TransportConfiguration
  private let mailbox: Mailbox
  private let thread: DedicatedThread
  private let resolver = HostResolver()

  /// Used by nothing but the thread it is handed to.
  private struct Handover: @unchecked Sendable { let loop: IOLoop }

  /// - Parameters:
  ///   - meter: is asked about the link of each connection, and told what it costs. All links are free without.
  ///   - beat: tells whether the thread works.
  /// - Throws: ``TLSError`` where certificate and key do not fit, ``SystemError`` where descriptors or threads are short.
  package init(
    _ configuration: TransportConfiguration = TransportConfiguration(), credentials: TLSCredentials,
    handler: any TransportHandler, meter: (any LinkMeter)? = nil, beat: ThreadBeat = ThreadBeat("of connections")
  ) throws {
    let mailbox = try Mailbox(configuration)
    let handover = Handover(
      loop: try IOLoop(configuration, try TLSContext(credentials), mailbox, handler, meter, beat))
    self.configuration = configuration
    self.mailbox = mailbox
    self.thread = try DedicatedThread.start("seamesh links") { handover.loop.run() }
  }

  deinit { mailbox.post(.stop) }

  /// Listens on `host`, or on every interface of both families if nil; port 0 picks one. Answers what was bound. May be
  /// called several times.
  package func listen(host: SocketAddress.Host? = nil, port: UInt16) throws(SystemError) -> [SocketAddress] {
    let sockets: [Descriptor]
    if let host {
      sockets = [try TCP.listen(SocketAddress(host, port: port))]
    } else {
      sockets = try TCP.listenEverywhere(port: port)
    }
    let bound = sockets.compactMap { TCP.localAddress($0.number) }
    for socket in sockets { mailbox.post(.listen(ListeningSocket(descriptor: socket))) }
    return bound
  }

  /// Connects; the handler hears `opened` or `dialFailed`, with `tag`. A name's addresses are tried one after another.
  @discardableResult
  package func dial(_ address: PeerAddress, tag: UInt64) -> ConnectionID {
    let number = mailbox.nextNumber()
    mailbox.noteAlive(number)
    let mailbox = mailbox
    switch address {
    case .socket(let address): mailbox.post(.dial(number, tag: tag, [address]))
    case .name(let name, let port):
      let accepted = resolver.resolve(name.string, port: port) { addresses in
        mailbox.post(.dial(number, tag: tag, addresses))
      }
      if !accepted { mailbox.post(.dial(number, tag: tag, [])) }
    }
    return ConnectionID(number: number)
  }

  /// Queues frames, in order. Each body must have 1 to ``TransportConfiguration/frameByteLimit`` bytes. All or none are
  /// taken: none while ``TransportConfiguration/sendQueueByteLimit`` bytes or more wait, or
  /// ``TransportConfiguration/sendQueueFrameLimit`` frames. Frames sent before `opened` wait for it.
  @discardableResult
  package func send(_ connection: ConnectionID, _ frames: [[UInt8]]) -> SendResult {
    for frame in frames {
      precondition(
        !frame.isEmpty && frame.count <= configuration.frameByteLimit,
        "a frame has 1 to 4 MiB, not \(frame.count) bytes")
    }
    return mailbox.send(connection.number, frames)
  }

  @discardableResult
  package func send(_ connection: ConnectionID, _ frame: [UInt8]) -> SendResult { send(connection, [frame]) }

  /// Ends the connection: cleanly after all that waits is written, or now. Nothing is delivered from it any more.
  package func close(_ connection: ConnectionID, afterFlush: Bool = true) {
    mailbox.post(.close(connection.number, afterFlush: afterFlush))
  }

  /// The caller trusts the peer now: the limits and the deadline for strangers end.
  package func authenticate(_ connection: ConnectionID) { mailbox.post(.authenticate(connection.number)) }

  /// No more is to wait than ``TransportConfiguration/leastQueueByteMark``, however fast the link is.
  package func keepShort(_ connection: ConnectionID) { mailbox.post(.keepShort(connection.number)) }

  /// Back-pressure: leaves input in the kernel, so that the peer's sending stops.
  package func pauseReading(_ connection: ConnectionID) { mailbox.post(.pauseReading(connection.number)) }
  package func resumeReading(_ connection: ConnectionID) { mailbox.post(.resumeReading(connection.number)) }

  /// To be called when addresses of this host changed: ends the connections made from one that is gone.
  package func closeStranded() { mailbox.post(.closeStranded) }

  /// To be called when links are of other classes than before: ends the connections that may not be any more, and charges
  /// the others as their meter says now.
  package func reviewLinks() { mailbox.post(.reviewLinks) }

  /// What is not yet handed to the kernel, lengths and ``frameOverheadByteCount`` included; nil for a connection that is
  /// gone.
  package func queuedBytes(of connection: ConnectionID) -> Int? {
    mailbox.queued(for: connection.number)?.cost.byteCount
  }
  package func queuedFrames(of connection: ConnectionID) -> Int? {
    mailbox.queued(for: connection.number)?.cost.frameCount
  }
  /// More waits than should: whoever sees this hears of ``TransportHandler/drained(_:queuedBytes:)``.
  package func isQueueLong(of connection: ConnectionID) -> Bool {
    mailbox.queued(for: connection.number)?.isLong ?? false
  }
  /// What should wait at the most, by how fast it is taken away.
  package func queueByteMark(of connection: ConnectionID) -> Int? { mailbox.queued(for: connection.number)?.byteMark }

  /// Of all connections together.
  package var queuedByteCount: Int { mailbox.queuedByteCount }

  package var statistics: TransportStatistics { mailbox.statistics }

  /// Closes everything and waits for the IO thread's end. Not to be called by the handler.
  package func stop() {
    mailbox.post(.stop)
    _ = thread.wait(milliseconds: SecureTransport.stopTimeoutMilliseconds)
  }
}
