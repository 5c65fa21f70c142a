import Replication
import Storage
import Transport

/// Where the lengths of a node's queues and the pace of its disk can be read at any moment, by any thread.
struct NodeGauges: Sendable {
  let transport: SecureTransport
  let intake: FrameIntake
  let inbox: Inbox
  let readers: StoreReaders
  let syncs: SyncMeter

  var figures: Figures {
    let (waiting, statistics) = (inbox.counts, transport.statistics)
    return Figures(
      logBytes: readers.logFileBytes, syncs: syncs.figures, waitingRequests: waiting.users,
      waitingEvents: waiting.peers,
      waitingFrameBytes: intake.waitingByteCount, received: intake.tally.received,
      unsentBytes: transport.queuedByteCount,
      acceptFailures: statistics.acceptFailures,
      failedToAccept: statistics.lastAcceptFailure.map(ElapsedClock.now().millisecondsSince))
  }

  struct Figures: Sendable {
    /// The file of the store's write-ahead log.
    var logBytes: Int64 = 0
    var syncs = SyncMeter.Figures()
    /// Of users of this node, and of connections, timers and discovery.
    var waitingRequests = 0
    var waitingEvents = 0
    /// Of peers, handed in and not taken up.
    var waitingFrameBytes = 0
    /// From peers since the start, by the kind of message.
    var received: [(name: String, row: FrameTally.Row)] = []
    /// For peers, not yet handed to the kernel.
    var unsentBytes = 0
    /// Connections that found no free descriptor.
    var acceptFailures = 0
    /// So many milliseconds ago the latest of those did.
    var failedToAccept: UInt64?
  }
}

extension NodeGauges.Figures {
  /// Twice the log's limit in catch-up: readers are held off long before.
  static let longLogBytes: Int64 = 512 * 1024 * 1024
  /// A local write waits for one sync, and sometimes for a few.
  static let slowSyncMicroseconds: UInt64 = 1_000_000
  static let syncsThatCount: UInt64 = 16
  /// More users than can be connected have asked for a batch each.
  static let manyRequests = 1_000

  var findings: [DoctorFinding] {
    var findings: [DoctorFinding] = []
    if logBytes > NodeGauges.Figures.longLogBytes {
      findings.append(
        DoctorFinding(
          .warning, "log-long",
          "The store's write-ahead log has grown to \(logBytes / 1_048_576) MiB: something reads from it without a pause.",
          remedy: "Wait for a backup that runs, above all onto a slow disk; the log shrinks when it is done."))
    }
    if syncs.count >= NodeGauges.Figures.syncsThatCount,
      syncs.slowMicroseconds > NodeGauges.Figures.slowSyncMicroseconds
    {
      findings.append(
        DoctorFinding(
          .warning, "disk-slow",
          "The disk is slow: of the last syncs one in a hundred took \(syncs.slowMicroseconds / 1_000) ms or more, the longest "
            + "\(syncs.longestMicroseconds / 1_000) ms. Each write waits for one.",
          remedy: "Look for what else writes to this disk, and in the system's log for its errors."))
    }
    if waitingRequests > NodeGauges.Figures.manyRequests || waitingFrameBytes > WaitingFrames.byteLimit {
      findings.append(
        DoctorFinding(
          .warning, "queues-long",
          "\(counted(waitingRequests, "request")) and \(waitingFrameBytes / 1_048_576) MiB of peers wait for the node.",
          remedy: "Wait: they are worked off in turn. If it lasts, the device is too slow for what it is asked."))
    }
    return findings
  }

  /// For Prometheus.
  var metrics: [String] {
    func gauge(_ name: String, _ help: String, _ value: some BinaryInteger) -> [String] {
      ["# HELP seamesh_\(name) \(help)", "# TYPE seamesh_\(name) gauge", "seamesh_\(name) \(value)"]
    }
    var lines = gauge("write_ahead_log_bytes", "Bytes of the file of the store's write-ahead log.", logBytes)
    lines += gauge("requests_waiting", "Requests of users that wait for the engine.", waitingRequests)
    lines += gauge("events_waiting", "Events of connections that wait for the engine.", waitingEvents)
    lines += gauge("frame_bytes_waiting", "Bytes of frames from peers that wait for the engine.", waitingFrameBytes)
    lines += gauge("send_bytes_waiting", "Bytes for peers that wait to be sent.", unsentBytes)
    lines += [
      "# HELP seamesh_connections_without_descriptor_total Connections that found no free descriptor.",
      "# TYPE seamesh_connections_without_descriptor_total counter",
      "seamesh_connections_without_descriptor_total \(acceptFailures)",
      "# HELP seamesh_sync_seconds How long the latest syncs of the store took; the quantile 1 is the longest.",
      "# TYPE seamesh_sync_seconds summary",
    ]
    for (quantile, microseconds) in [
      ("0.5", syncs.medianMicroseconds), ("0.99", syncs.slowMicroseconds), ("1", syncs.longestMicroseconds),
    ] {
      lines.append("seamesh_sync_seconds{quantile=\"\(quantile)\"} \(Double(microseconds) / 1e6)")
    }
    return lines + ["seamesh_sync_seconds_count \(syncs.count)"] + receivedMetrics
  }

  private var receivedMetrics: [String] {
    func counter(_ name: String, _ help: String, _ value: (FrameTally.Row) -> UInt64) -> [String] {
      ["# HELP seamesh_received_\(name)_total \(help)", "# TYPE seamesh_received_\(name)_total counter"]
        + received.map { "seamesh_received_\(name)_total{message=\"\($0.name)\"} \(value($0.row))" }
    }
    return counter("messages", "Messages of peers, by kind.", \.frames)
      + counter("bytes", "Bytes of messages of peers, by kind, without TLS.", \.bytes)
  }
}
