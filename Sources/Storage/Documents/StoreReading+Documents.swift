import Replication

extension StoreReading where Self: ~Copyable {
  /// Nil where no document of that collection has ever been met.
  package func collectionNumber(_ name: Text) throws(StoreError) -> CollectionNumber? {
    if let known = numbers.collections[name] { return known }
    let rows = try database.statement("SELECT id FROM collections WHERE name=?1")
    defer { rows.reset() }
    try rows.bind(1, name)
    guard try rows.step() else { return nil }
    let number = CollectionNumber(rawValue: rows.integer(0))
    numbers.remember(name, number)
    return number
  }

  package func collectionName(_ number: CollectionNumber) throws(StoreError) -> Text {
    if let known = numbers.collectionNames[number] { return known }
    let rows = try database.statement("SELECT name FROM collections WHERE id=?1")
    defer { rows.reset() }
    try rows.bind(1, number.rawValue)
    guard try rows.step() else { throw .damaged("collection \(number.rawValue) has no name") }
    let name = Text(rows.text(0))
    numbers.remember(name, number)
    return name
  }

  /// Collections with documents, alive or deleted, in byte order of their names. Cost: a seek for each.
  package func collections(of partition: PartitionNumber) throws(StoreError) -> [(name: Text, number: CollectionNumber)]
  {
    let next = try database.statement(
      "SELECT collection FROM documents WHERE partition=?1 AND collection>?2 ORDER BY collection LIMIT 1")
    var found: [(name: Text, number: CollectionNumber)] = []
    var last = Int64.min
    try next.bind(1, partition.rawValue)
    while true {
      defer { next.reset() }
      try next.bind(2, last)
      guard try next.step() else { break }
      last = next.integer(0)
      let number = CollectionNumber(rawValue: last)
      found.append((try collectionName(number), number))
    }
    return found.sorted { $0.name < $1.name }
  }

  /// One document, alive or deleted; nil where none has ever been there.
  package func document(
    _ partition: PartitionNumber, _ collection: CollectionNumber, key: [UInt8]
  ) throws(StoreError) -> DocumentRow? {
    let rows = try database.statement(
      """
      SELECT id, key, state, alive, sum, run, start, length FROM documents
      WHERE partition=?1 AND collection=?2 AND key=?3
      """)
    defer { rows.reset() }
    try rows.bind(1, partition.rawValue)
    try rows.bind(2, collection.rawValue)
    try rows.bind(3, copied: key)
    return try rows.step() ? try document(rows, partition, collection) : nil
  }

  /// Of a row with the columns `id, key, state, alive, sum, run, start, length`.
  private func document(
    _ rows: PreparedStatement, _ partition: PartitionNumber, _ collection: CollectionNumber
  ) throws(StoreError) -> DocumentRow {
    let isAlive = rows.integer(3) != 0
    var state = rows.bytes(2)
    let reference = RunReference(rows, from: 5)
    if let reference {
      try numbers.bodies.withOperations(reference, in: database) { state.append(contentsOf: $0) }
    }
    let sum = state.span.bytes.withUnsafeBytes {
      RowSum(ofDocument: rows.borrowedBytes(1), in: partition, collection, isAlive: isAlive, state: $0)
    }
    let isIntact = rows.optionalInteger(4).map { $0 == sum.value } ?? true
    // The run may have come anew since.
    if reference != nil, !isIntact { numbers.bodies.forget() }
    return DocumentRow(
      row: rows.integer(0), key: rows.bytes(1), isAlive: isAlive, state: state, isIntact: isIntact)
  }

  /// Living documents in key order above `key` (nil: from the first), with `withDeleted` the others too: at least one where
  /// there is one, then up to `limit` while their states stay within `byteLimit`. Fewer than `limit` may mean the byte limit:
  /// only an empty answer is the end.
  package func documents(
    _ partition: PartitionNumber, _ collection: CollectionNumber, after key: [UInt8]? = nil, limit: Int,
    byteLimit: Int = .max, withDeleted: Bool = false
  ) throws(StoreError) -> [DocumentRow] {
    let rows = try database.statement(
      """
      SELECT id, key, state, alive, sum, run, start, length FROM documents
      WHERE partition=?1 AND collection=?2 AND key>?3 AND alive>=?5 ORDER BY key LIMIT ?4
      """)
    defer { rows.reset() }
    try rows.bind(1, partition.rawValue)
    try rows.bind(2, collection.rawValue)
    // No key is empty: canonical bytes begin with a tag.
    try rows.bind(3, copied: key ?? [])
    try rows.bind(4, Int64(clamping: limit))
    try rows.bind(5, withDeleted ? 0 : 1)
    var found: [DocumentRow] = []
    var bytes = 0
    while try rows.step() {
      let row = try document(rows, partition, collection)
      if !found.isEmpty && bytes + row.state.count > byteLimit { break }
      bytes += row.state.count
      found.append(row)
    }
    return found
  }

  /// Living documents of one collection, counted one by one. For a whole partition see ``Counters``.
  package func documentCount(
    _ partition: PartitionNumber, _ collection: CollectionNumber
  ) throws(StoreError) -> Int64 {
    let rows = try database.statement(
      "SELECT count(*) FROM documents WHERE partition=?1 AND collection=?2 AND alive=1")
    defer { rows.reset() }
    try rows.bind(1, partition.rawValue)
    try rows.bind(2, collection.rawValue)
    return try rows.step() ? rows.integer(0) : 0
  }
}
