import Engine
import Replication
import Storage
import Testing
import Transport

@testable import Seamesh

/// What a node says of its disk, its queues and the files that it may open.
@Suite struct GaugeTests {
  private typealias Figures = NodeGauges.Figures

  @Test("metrics tell the log's bytes, the time of syncs and what waits")
  func metrics() throws {
    let fleet = try TestFleet(1)
    let room = try PartitionName("room=1")
    for index in 0..<3 { try fleet.nodes[0].put(room, "c", Text("\(index)"), body(["n": .int(1)])) }
    let lines = try fleet.nodes[0].metrics().split(separator: "\n")
    func value(_ name: String) throws -> Double {
      let line = try #require(lines.first { $0.hasPrefix("seamesh_\(name) ") }, "no seamesh_\(name)")
      return try #require(line.split(separator: " ").last.flatMap { Double($0) })
    }
    #expect(try value("write_ahead_log_bytes") > 0)
    #expect(try value("sync_seconds_count") >= 3, "each write waits for one")
    #expect(try value("sync_seconds{quantile=\"0.99\"}") >= value("sync_seconds{quantile=\"0.5\"}"))
    #expect(try value("sync_seconds{quantile=\"1\"}") > 0)
    for queue in ["requests_waiting", "events_waiting", "frame_bytes_waiting", "send_bytes_waiting"] {
      #expect(try value(queue) >= 0)
    }
  }

  @Test("doctor tells of a long log, a slow disk and long queues, and of nothing within bounds")
  func findings() {
    var figures = Figures(
      logBytes: Figures.longLogBytes, waitingRequests: Figures.manyRequests, waitingFrameBytes: WaitingFrames.byteLimit)
    figures.syncs.count = Figures.syncsThatCount
    figures.syncs.slowMicroseconds = Figures.slowSyncMicroseconds
    #expect(figures.findings.isEmpty)
    figures.logBytes += 1
    figures.syncs.slowMicroseconds += 1
    figures.waitingRequests += 1
    #expect(figures.findings.map(\.code) == ["log-long", "disk-slow", "queues-long"])
    figures.syncs.count -= 1
    #expect(!figures.findings.contains { $0.code == "disk-slow" }, "a few syncs show nothing")
  }

  @Test("few files are shared between peers and users, with what the node needs kept back")
  func shares() {
    let few = DescriptorBudget(limit: 64)
    #expect(few.peers + few.users + DescriptorBudget.ownFiles <= 64 && few.peers >= 4 && few.users >= 4)
    #expect(few.isScarce && few.followers < few.users)
    #expect(few.transport.connectionLimit == few.peers && few.transport.unauthenticatedLimit < few.peers)
    #expect(few.transport.unauthenticatedPerSourceLimit < few.transport.unauthenticatedLimit)
    let plenty = DescriptorBudget(limit: 1_024)
    #expect(!plenty.isScarce && plenty.peers == 256 && plenty.users == 160 && plenty.followers == 48)
    #expect(plenty.transport.connectionLimit == TransportConfiguration().connectionLimit)
    var figures = NodeGauges.Figures()
    #expect(plenty.finding(figures) == nil && few.finding(figures)?.level == .warning)
    (figures.acceptFailures, figures.failedToAccept) = (2, DescriptorBudget.memoryMilliseconds)
    #expect(plenty.finding(figures)?.level == .problem && few.finding(figures)?.level == .problem)
    figures.failedToAccept = DescriptorBudget.memoryMilliseconds + 1
    #expect(plenty.finding(figures) == nil, "it was long ago")
    #expect(few.finding(figures)?.level == .warning && few.finding(figures)?.message.contains("2 times") == true)
    #expect(DescriptorBudget(limit: 0).peers == 4, "a node that cannot be helped tries")
  }
}
