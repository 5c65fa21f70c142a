extension Mesh {
  /// What grows with peers and partitions, for those who watch bounds.
  package struct Footprint: Sendable, Equatable {
    package var sessions = 0
    package var streams = 0
    /// Of partitions that are known by name alone.
    package var awaitedStreams = 0
    package var parkedBatches = 0
    package var awaitedHeaders = 0
  }

  package var footprint: Footprint {
    let streams = sessions.values.reduce(0) { $0 + $1.streams.count }
    let awaited = sessions.values.reduce(0) { $0 + $1.streams.keys.count { partitions[$0] == nil } }
    return Footprint(
      sessions: sessions.count, streams: streams - awaited, awaitedStreams: awaited,
      parkedBatches: partitions.values.reduce(0) { $0 + $1.parked.count },
      awaitedHeaders: partitions.values.reduce(0) { $0 + $1.awaitedHeaders })
  }
}
