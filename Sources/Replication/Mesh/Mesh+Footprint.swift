extension Mesh {
  /// What grows with peers and partitions, for those who watch bounds.
  package struct Footprint: Sendable, Equatable {
    package var sessions = 0
    package var streams = 0
    package var parkedBatches = 0
    package var awaitedHeaders = 0
  }

  package var footprint: Footprint {
    Footprint(
      sessions: sessions.count, streams: sessions.values.reduce(0) { $0 + $1.streams.count },
      parkedBatches: partitions.values.reduce(0) { $0 + $1.parked.count },
      awaitedHeaders: partitions.values.reduce(0) { $0 + $1.awaitedHeaders })
  }
}
