import Glibc
import LocalAPI
import Replication
import Seamesh
import Wire

enum ImportTarget {
  case partition(String)
  /// The partition's name is `FIELD=value of the field`.
  case field(String)
}

/// Feeds records to the node in batches, and puts aside what it refuses.
final class Importer {
  /// Few enough that progress shows, many enough that a group commit is worth its disk flush.
  static let batchRecords = 500
  /// So many that a last record still fits into one request, however large, with the line breaks.
  static let batchBytes = ServerLimit.importBodyBytes - ServerLimit.documentBodyBytes - batchRecords
  /// Over all partitions.
  static let pendingBytes = 32 * 1024 * 1024
  static let busyRetries = 30
  /// Of records that wait to be put aside, so that they are told in the order of their lines.
  static let refusedBytes = 4 * 1024 * 1024

  struct Counts: Equatable {
    var imported: Int64 = 0
    var unchanged: Int64 = 0
    var aside: Int64 = 0
  }

  private typealias File = (number: Int, name: String)

  private struct Place: Hashable {
    let partition: String
    let collection: String
  }

  /// With what is stored of the record, as JSON.
  private typealias Entry = (file: File, record: JSONRecordReader.Record, document: [UInt8])

  private struct Pending {
    var records: [Entry] = []
    var bytes = 0
  }

  /// What came of a record that did not go in.
  private enum Trouble {
    /// The record's own: it was put aside.
    case aside
    case busy(Failure)
    case ofNode(Failure)
  }

  let aside: AsideFile
  let progress: ProgressBar
  private(set) var counts = Counts()
  private let client: NodeClient
  private let target: ImportTarget
  /// Nil where each record says its own, as ``ExportedLine`` has it.
  private let collection: String?
  private let keepAbsent: Bool
  private let fileBytes: Int64?
  private var readBytes: Int64 = 0
  private var pending: [Place: Pending] = [:]
  private var pendingBytes = 0
  private var refused: [AsideFile.Record] = []
  private var refusedBytes = 0

  init(
    client: NodeClient, target: ImportTarget, collection: String?, keepAbsent: Bool, aside: AsideFile,
    progress: ProgressBar, fileBytes: Int64?
  ) {
    (self.client, self.target, self.collection, self.keepAbsent) = (client, target, collection, keepAbsent)
    (self.aside, self.progress, self.fileBytes) = (aside, progress, fileBytes)
  }

  func run(_ files: [InputFile]) throws(Failure) -> Counts {
    do throws(Failure) {
      for (number, file) in files.enumerated() { try read(file, number) }
      try sendAll()
    } catch {
      try tellRefused()
      throw error
    }
    progress.finish()
    try tellRefused()
    counts.aside = aside.count
    return counts
  }

  private func read(_ file: InputFile, _ number: Int) throws(Failure) {
    var reader = JSONRecordReader()
    var isAtEnd = false
    while !isAtEnd {
      let piece = try file.next()
      readBytes += Int64(piece.count)
      isAtEnd = piece.isEmpty
      if isAtEnd { reader.finish() } else { reader.append(piece) }
      while let item = reader.next() {
        try take(item, (number, file.name))
        if refusedBytes >= Importer.refusedBytes { try sendAll() }
        if pending.isEmpty { try tellRefused() }
      }
      progress.update(done: readBytes, total: fileBytes, unit: "bytes")
    }
  }

  private func take(_ item: JSONRecordReader.Item, _ file: File) throws(Failure) {
    switch item {
    case .failure(let failure): refuse(failure, file)
    case .record(let record):
      if let aside = AsideLine(record, in: file.name) {
        guard !aside.isInDoubt else { return refuse(record, file, .sentence(AsideLine.doubt)) }
        return try take(aside, line: record.line, file)
      }
      guard !AsideLine.isBroken(record, in: file.name) else {
        return refuse(
          record, file, .sentence("a record put aside stands in a line with file, line, reason and record alone"))
      }
      try take(record, file)
    }
  }

  private func take(_ record: JSONRecordReader.Record, _ file: File) throws(Failure) {
    guard record.bytes.count <= ServerLimit.documentBodyBytes else {
      return refuse(record, file, .sentence("\(record.bytes.count) bytes are more than a document may have"))
    }
    let (place, document): (Place, [UInt8])
    do throws(Unfit) {
      let (collection, content) = try content(of: record)
      (place, document) = (Place(partition: try partition(of: record).get(), collection: collection), content)
    } catch {
      return refuse(record, file, error.reason)
    }
    try add(record, document, file, to: place)
  }

  /// In which collection what is to be stored.
  private func content(of record: JSONRecordReader.Record) throws(Unfit) -> (collection: String, document: [UInt8]) {
    let line = ExportedLine(record)
    switch (collection, line) {
    case (let collection?, nil): return (collection, record.bytes)
    case (nil, let line?): return (line.collection, line.document)
    case (_?, _?):
      throw Unfit(
        "this looks like a line of an export of a whole partition: import it with --\(byCollectionOption.name), without COLLECTION, "
          + "or give it an _id, if it is a document of its own")
    case (nil, nil):
      throw Unfit(
        "a line of an export of a whole partition has the name of a collection, the document with its _id, and no others"
      )
    }
  }

  private func take(_ aside: AsideLine, line: Int, _ file: File) throws(Failure) {
    guard !aside.isCut else {
      return refuse(
        .init(
          file: file, lines: line...line, bytes: aside.bytes, byteCount: aside.byteCount,
          reason: .sentence("only the beginning of this record was kept: mend it where it came from")))
    }
    // What is in it is the record, whatever that looks like.
    for item in aside.items(line: line) {
      switch item {
      case .failure(let failure): refuse(failure, file)
      case .record(let record): try take(record, file)
      }
    }
  }

  private struct Unfit: Error {
    let reason: AsideFile.Reason
    init(_ sentence: String) { reason = .sentence(sentence) }
    init(_ error: JSONError) { reason = .mistake(error) }
  }

  private func partition(of record: JSONRecordReader.Record) -> Result<String, Unfit> {
    let field: String
    switch target {
    case .partition(let name): return .success(name)
    case .field(let name): field = name
    }
    let document: ValueMap
    do throws(JSONError) {
      document = try record.value(limits: .ofDocumentBody)
    } catch {
      return .failure(Unfit(error))
    }
    switch document.value(at: field) {
    case .string(let text)? where !text.utf8.isEmpty:
      let name = "\(field)=\(text.string)"
      guard (try? PartitionName(Text(name)))?.takesDocuments == true else {
        return .failure(Unfit("the value of \(field) makes no name of a partition"))
      }
      return .success(name)
    case .string?: return .failure(Unfit("\(field) is empty"))
    case nil: return .failure(Unfit("\(field) is missing"))
    case .some: return .failure(Unfit("\(field) is not a text"))
    }
  }

  private func refuse(_ failure: JSONRecordReader.Failure, _ file: File) {
    refuse(
      .init(
        file: file, lines: failure.lines, bytes: failure.bytes, byteCount: failure.byteCount,
        reason: .mistake(failure.error)))
  }

  private func refuse(_ record: JSONRecordReader.Record, _ file: File, _ reason: AsideFile.Reason) {
    let breaks = record.bytes.count { $0 == UInt8(ascii: "\n") }
    refuse(
      .init(
        file: file, lines: record.line...(record.line + breaks), bytes: record.bytes, byteCount: record.bytes.count,
        reason: reason))
  }

  private func refuse(_ record: AsideFile.Record) {
    refused.append(record)
    refusedBytes += record.bytes.count + MemoryLayout<AsideFile.Record>.size
  }

  /// What the reader, the field and the node refused, each at a time of its own, in the order in which it stands.
  private func tellRefused() throws(Failure) {
    let records = refused.sorted { $0.order < $1.order }
    (refused, refusedBytes) = ([], 0)
    for record in records { try aside.add(record) }
  }

  private func add(
    _ record: JSONRecordReader.Record, _ document: [UInt8], _ file: File, to place: Place
  ) throws(Failure) {
    pending[place, default: Pending()].records.append((file, record, document))
    pending[place]?.bytes += document.count
    pendingBytes += document.count
    if let batch = pending[place],
      batch.records.count >= Importer.batchRecords || batch.bytes >= Importer.batchBytes
    {
      try send(place)
    } else if pendingBytes >= Importer.pendingBytes {
      try sendAll()
    }
  }

  private func sendAll() throws(Failure) {
    let places = pending.keys.sorted { ($0.partition, $0.collection) < ($1.partition, $1.collection) }
    for place in places { try send(place) }
  }

  private func send(_ place: Place) throws(Failure) {
    guard let batch = pending.removeValue(forKey: place) else { return }
    pendingBytes -= batch.bytes
    var (waiting, busyRounds) = (batch.records, 0)
    while let busy = try store(&waiting, in: place) {
      guard busyRounds < Importer.busyRetries else { throw busy }
      busyRounds += 1
      sleep(1)
    }
    progress.update(done: readBytes, total: fileBytes, unit: "bytes")
  }

  /// Takes what the node answers for all of the records before anything ends the import, and leaves in `records` those for which it
  /// was busy; answers what it said of the first of these.
  private func store(_ records: inout [Entry], in place: Place) throws(Failure) -> Failure? {
    let query = NodePath.query([("keepAbsent", keepAbsent ? "true" : nil)])
    let request = NodeClient.Request(
      method: "POST", target: NodePath.collection(place.partition, place.collection) + "/import" + query,
      body: records.flatMap { line($0.document) }, contentType: "application/x-ndjson")
    let results = try client.askPatiently(request, retries: Importer.busyRetries).json().list("results")
    guard results.count == records.count else {
      throw Failure(.failed, "the node answered for \(results.count) of \(records.count) records")
    }
    var (left, busy, failure): ([Entry], Failure?, Failure?) = ([], nil, nil)
    var waiting: Set<Value> = []
    for (entry, result) in zip(records, results) {
      // What went in stands behind an earlier record of its document that is to be sent again, and goes in behind it once more.
      if !waiting.isEmpty, let id = result["id"], waiting.contains(id) {
        left.append(entry)
        continue
      }
      switch take(result, entry.record, entry.file) {
      case nil, .aside: break
      case .busy(let reason):
        left.append(entry)
        busy = busy ?? reason
        if let id = Importer.id(of: entry.document) { waiting.insert(id) }
      case .ofNode(let reason): failure = failure ?? reason
      }
    }
    if let failure { throw failure }
    records = left
    return busy
  }

  private static func id(of document: [UInt8]) -> Value? {
    (try? ExtendedJSON.parseMap(document, limits: .ofDocumentBody))?[
      "_id"]
  }

  /// Nil where the record went in.
  private func take(_ result: ValueMap, _ record: JSONRecordReader.Record, _ file: File) -> Trouble? {
    guard let problem = result["error"]?.map else {
      counts.imported += 1
      if !result.flag("changed") { counts.unchanged += 1 }
      return nil
    }
    let type = problem.text("type")
    let failure = Failure(.failed, shown(problem.text("detail")))
    guard type != Problem.Kind.busy.type else { return .busy(failure) }
    // What is one record's matter is put aside; the node's own (no room, stopping) would put everything aside.
    guard problem.number("status") < 500 || type == Problem.Kind.damagedDocument.type else { return .ofNode(failure) }
    refuse(record, file, Importer.reason(problem, record))
    return .aside
  }

  /// The node saw the record as one line of its own: a mistake in its JSON is found again here, with its place in the
  /// file.
  private static func reason(_ problem: ValueMap, _ record: JSONRecordReader.Record) -> AsideFile.Reason {
    guard problem["line"] != nil else { return .sentence(problem.text("detail")) }
    do throws(JSONError) {
      _ = try record.value(limits: .ofDocumentBody)
      return .sentence(problem.text("detail"))
    } catch {
      return .mistake(error)
    }
  }

  /// Line breaks in JSON are white space: a document becomes one line, byte for byte as long as it was.
  private func line(_ document: [UInt8]) -> [UInt8] {
    document.map { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") ? UInt8(ascii: " ") : $0 } + [
      UInt8(ascii: "\n")
    ]
  }
}

extension ValueMap {
  /// The value at a path of fields with dots between them; a field whose own name has the dots goes before.
  func value(at path: String) -> Value? {
    if let value = self[Text(path)] { return value }
    let parts = path.split(separator: ".", maxSplits: 1)
    guard parts.count == 2, let inner = self[Text(String(parts[0]))]?.map else { return nil }
    return inner.value(at: String(parts[1]))
  }
}

extension NodeClient {
  /// Asks again, a second later, while the node is busy.
  func askPatiently(_ request: Request, retries: Int) throws(Failure) -> Answer {
    for _ in 0..<retries {
      do throws(Failure) {
        return try ask(request)
      } catch  where error.isBusy {
        sleep(1)
      }
    }
    return try ask(request)
  }
}
