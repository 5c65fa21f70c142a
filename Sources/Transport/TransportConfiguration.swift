/// Limits of the transport. The defaults are those of the protocol; tests shorten the times.
package struct TransportConfiguration: Sendable {
  /// Body of a frame from a peer that is not authenticated yet (W3).
  package var unauthenticatedFrameByteLimit = 16 * 1024
  /// All frames of such a peer together; what comes after waits in the kernel until it is authenticated.
  package var unauthenticatedInputByteLimit = 64 * 1024
  /// Body of a frame afterwards: the largest change (4 MiB − 64 KiB) with its run record and framing fits.
  package var frameByteLimit = 4 * 1024 * 1024 + 64 * 1024

  /// Of frames that have not come to their end, over all connections: beyond it who has most of one here is cut off. Half of
  /// what may wait for the engine, of which it counts as a part.
  package var unfinishedByteLimit = 32 * 1024 * 1024

  /// TCP connect, for each address of a name.
  package var connectTimeoutMilliseconds: UInt64 = 5_000
  /// TLS handshake (W4), from the accepted or made connection on.
  package var handshakeTimeoutMilliseconds: UInt64 = 5_000
  /// Handshake and authentication together, for connections that others made.
  package var authenticationTimeoutMilliseconds: UInt64 = 5_000
  /// The same for connections this node made: it chose the peer, which may be behind a satellite (N10).
  package var dialledAuthenticationTimeoutMilliseconds: UInt64 = 10_000
  /// N12: nothing of what waits could be written for so long.
  package var stallTimeoutMilliseconds: UInt64 = 30_000
  /// A closing connection gets so long to write what waits and to hear the peer's end.
  package var closingTimeoutMilliseconds: UInt64 = 3_000

  /// W4: connections from others that are not authenticated, in all and per address.
  package var unauthenticatedLimit = 32
  package var unauthenticatedPerSourceLimit = 8
  /// A handshake costs 0.3–1 ms of a core: this keeps a flood of them below a fifth of it.
  package var acceptsPerSecond = 200
  package var acceptBurst = 64
  /// All connections: a fleet has tens of devices; each connection costs a descriptor and about 200 KiB.
  package var connectionLimit = 256

  /// Frames are refused while more than this waits for one connection: one largest frame is always taken.
  /// A frame counts with its length and ``SecureTransport/frameOverheadByteCount``.
  package var sendQueueByteLimit = 8 * 1024 * 1024
  /// The same in frames, for small ones.
  package var sendQueueFrameLimit = 65_536
  /// What should wait for one connection at the most is what it takes away in this time, within the bounds below: what
  /// waits stands before whatever comes up next. Above it ``SecureTransport/isQueueLong(of:)``, until
  /// ``TransportHandler/drained(_:queuedBytes:)`` tells that less than half of it waits.
  package var queueMilliseconds: UInt64 = 60
  package var leastQueueByteMark = 32 * 1024
  package var mostQueueByteMark = 2 * 1024 * 1024
  /// Beside that so much may be under way in the kernel, or half as much where that is more, and what the way itself holds.
  package var leastKernelByteLimit = 32 * 1024

  package init() {}
}
