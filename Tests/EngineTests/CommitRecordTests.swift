import Identity
import Replication
import Testing

@testable import Engine

extension CommitRecord {
  /// Ids of the documents that it names, sorted.
  var ids: [Text] {
    var ids: Set<Text> = []
    for changed in documents {
      changed.forEach { _, key in
        if case .string(let id)? = Value(canonicalID: Array(key)) { ids.insert(id) }
      }
    }
    return ids.sorted()
  }
}

/// What those who follow commits are told.
@Suite struct CommitRecordTests {
  private let room: PartitionName
  init() throws { room = try PartitionName("room=1") }

  @Test("a local write is told with its place in the log, what counts before and after it, and its documents")
  func localWrite() throws {
    let node = try EngineBench().nodes[0]
    try node.write(room, Put("a"), Put("b"))
    try node.write(room, Put("b", 2))
    #expect(node.feed.records.count == 2)
    let (first, second) = (node.feed.records[0], node.feed.records[1])
    #expect(first.partitions.map(\.partition) == [node.id(of: room)])
    #expect(first.partitions[0].before.isEmpty)
    #expect(first.partitions[0].accepted.sorted.map(\.position.sequence) == [1])
    #expect(first.ids == ["a", "b"])
    #expect(first.arrivals == 1...1)
    #expect(second.partitions[0].before == first.partitions[0].accepted)
    #expect(second.partitions[0].accepted == node.accepted(room))
    #expect(second.ids == ["b"])
    #expect(second.arrivals == 2...2)
    for changed in first.documents {
      changed.forEach { place, _ in
        #expect(place == ChangedDocuments.Place(partition: node.id(of: room), collection: "c"))
      }
    }
  }

  @Test("one commit of two partitions is one record that names both, sorted by id")
  func twoPartitions() throws {
    let node = try EngineBench().nodes[0]
    let other = try PartitionName("room=2")
    let jobs = [node.job(room, [Put("a")]), node.job(other, [Put("b")])]
    node.engine.turn(jobs.map { .write($0.0) })
    let record = try #require(node.feed.records.first)
    #expect(node.feed.records.count == 1)
    #expect(record.partitions.map(\.partition) == [node.id(of: room), node.id(of: other)].sorted())
    #expect(record.ids == ["a", "b"])
    #expect(record.arrivals == 1...2)
  }

  @Test("runs of a peer are told in the same form")
  func remoteRuns() throws {
    let bench = try EngineBench(2)
    try bench.nodes[1].subscribe("room=*")
    try bench.nodes[0].write(room, Put("a"))
    try bench.nodes[0].write(room, Put("b"))
    bench.meet(1, 0)
    let record = try #require(bench.nodes[1].feed.records.last)
    #expect(record.partitions.map(\.name) == [room])
    #expect(record.partitions[0].accepted == bench.nodes[0].accepted(room))
    #expect(Set(bench.nodes[1].feed.records.flatMap(\.ids)) == ["a", "b"])
    #expect(record.arrivals?.upperBound == 2)
  }

  @Test("what changes no log and no document is told to nobody")
  func nothing() throws {
    let node = try EngineBench().nodes[0]
    try node.subscribe("room=*")
    try node.write(room, Erase("a"))
    #expect(node.feed.records.isEmpty)
  }

  @Test("after a restart the first record goes on from what counted before it")
  func restart() throws {
    let bench = try EngineBench()
    try bench.nodes[0].write(room, Put("a"))
    let before = bench.nodes[0].accepted(room)
    try bench.restart(0)
    try bench.nodes[0].write(room, Put("b"))
    #expect(bench.nodes[0].feed.records.map { $0.partitions[0].before } == [before])
    #expect(bench.nodes[0].feed.records.map(\.arrivals) == [2...2])
  }

  @Test("records join on to one another without a gap, over forks, and end in what the node holds")
  func joined() throws {
    let bench = try EngineBench(2)
    for node in bench.nodes { try node.subscribe("room=*") }
    try bench.nodes[0].write(room, Put("before"))
    bench.cut(bench.meet(0, 1))
    let copy = try bench.clone(0)
    for slot in [0, copy] {
      try bench.nodes[slot].write(room, Put("both", Int64(slot)))
      try bench.nodes[slot].write(room, Put(Text("own\(slot)")))
    }
    for slot in [0, copy, 0, copy] { bench.cut(bench.meet(slot, 1)) }
    for node in bench.nodes {
      var (counts, arrival): (VersionVector?, Int64) = (nil, 0)
      for record in node.feed.records {
        for moved in record.partitions {
          if let counts { #expect(moved.before == counts) }
          counts = moved.accepted
        }
        if let arrivals = record.arrivals {
          #expect(arrivals.lowerBound > arrival)
          arrival = arrivals.upperBound
        }
      }
      #expect(counts == node.accepted(room))
    }
    // The middle saw the branch that was put aside as a rebuild, which names its documents.
    let named = Set(bench.nodes[1].feed.records.flatMap(\.ids))
    #expect(named == ["before", "both", "own0", "own2"])
  }
}
