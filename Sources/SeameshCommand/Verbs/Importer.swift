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
  /// Records of up to half of what one request may carry, so that a last large one still fits.
  static let batchBytes = ServerLimit.importBodyBytes / 2
  /// Over all partitions.
  static let pendingBytes = 32 * 1024 * 1024
  static let busyRetries = 30

  struct Counts: Equatable {
    var imported: Int64 = 0
    var unchanged: Int64 = 0
    var aside: Int64 = 0
  }

  private struct Pending {
    var records: [(file: String, record: JSONRecordReader.Record)] = []
    var bytes = 0
  }

  let aside: AsideFile
  let progress: ProgressBar
  private(set) var counts = Counts()
  private let client: NodeClient
  private let target: ImportTarget
  private let collection: String
  private let eraseAbsent: Bool
  private let fileBytes: Int64?
  private var readBytes: Int64 = 0
  private var pending: [String: Pending] = [:]
  private var pendingBytes = 0

  init(
    client: NodeClient, target: ImportTarget, collection: String, eraseAbsent: Bool, aside: AsideFile,
    progress: ProgressBar, fileBytes: Int64?
  ) {
    (self.client, self.target, self.collection, self.eraseAbsent) = (client, target, collection, eraseAbsent)
    (self.aside, self.progress, self.fileBytes) = (aside, progress, fileBytes)
  }

  func run(_ files: [InputFile]) throws(Failure) -> Counts {
    for file in files {
      var reader = JSONRecordReader()
      var isAtEnd = false
      while !isAtEnd {
        let piece = try file.next()
        readBytes += Int64(piece.count)
        isAtEnd = piece.isEmpty
        if isAtEnd { reader.finish() } else { reader.append(piece) }
        while let item = reader.next() { try take(item, file.name) }
        progress.update(done: readBytes, total: fileBytes, unit: "bytes")
      }
    }
    try sendAll()
    progress.finish()
    counts.aside = aside.count
    return counts
  }

  private func take(_ item: JSONRecordReader.Item, _ file: String) throws(Failure) {
    switch item {
    case .failure(let failure):
      try aside.add(
        failure.bytes, file: file, lines: failure.lines, byteCount: failure.byteCount, reason: failure.error.message)
    case .record(let record):
      guard record.bytes.count <= ServerLimit.documentBodyBytes else {
        return try putAside(record, file, "\(record.bytes.count) bytes are more than a document may have")
      }
      switch partition(of: record) {
      case .success(let partition): try add(record, file, to: partition)
      case .failure(let reason): try putAside(record, file, reason.text)
      }
    }
  }

  private struct Reason: Error {
    let text: String
  }

  private func partition(of record: JSONRecordReader.Record) -> Result<String, Reason> {
    guard case .field(let field) = target else {
      guard case .partition(let name) = target else { return .failure(Reason(text: "no partition")) }
      return .success(name)
    }
    let document: ValueMap
    do throws(JSONError) {
      document = try record.value(limits: ExtendedJSON.Limits(byteCount: ServerLimit.documentBodyBytes))
    } catch {
      return .failure(Reason(text: error.message))
    }
    switch document.value(at: field) {
    case .string(let text)? where !text.utf8.isEmpty:
      let name = "\(field)=\(text.string)"
      guard (try? PartitionName(Text(name)))?.takesDocuments == true else {
        return .failure(Reason(text: "the value of \(field) makes no name of a partition"))
      }
      return .success(name)
    case .string?: return .failure(Reason(text: "\(field) is empty"))
    case nil: return .failure(Reason(text: "\(field) is missing"))
    case .some: return .failure(Reason(text: "\(field) is not a text"))
    }
  }

  private func putAside(_ record: JSONRecordReader.Record, _ file: String, _ reason: String) throws(Failure) {
    let breaks = record.bytes.count { $0 == UInt8(ascii: "\n") }
    try aside.add(
      record.bytes, file: file, lines: record.line...(record.line + breaks), byteCount: record.bytes.count,
      reason: reason)
  }

  private func add(_ record: JSONRecordReader.Record, _ file: String, to partition: String) throws(Failure) {
    pending[partition, default: Pending()].records.append((file, record))
    pending[partition]?.bytes += record.bytes.count
    pendingBytes += record.bytes.count
    if let batch = pending[partition],
      batch.records.count >= Importer.batchRecords || batch.bytes >= Importer.batchBytes
    {
      try send(partition)
    } else if pendingBytes >= Importer.pendingBytes {
      try sendAll()
    }
  }

  private func sendAll() throws(Failure) {
    for partition in pending.keys.sorted() { try send(partition) }
  }

  private func send(_ partition: String) throws(Failure) {
    guard let batch = pending.removeValue(forKey: partition) else { return }
    pendingBytes -= batch.bytes
    let query = NodePath.query([("eraseAbsent", eraseAbsent ? "true" : nil)])
    let request = NodeClient.Request(
      method: "POST", target: NodePath.collection(partition, collection) + "/import" + query,
      body: batch.records.flatMap { line($0.record) }, contentType: "application/x-ndjson")
    let results = try client.askPatiently(request, retries: Importer.busyRetries).json().list("results")
    guard results.count == batch.records.count else {
      throw Failure(.failed, "the node answered for \(results.count) of \(batch.records.count) records")
    }
    for (entry, result) in zip(batch.records, results) { try take(result, entry.record, entry.file) }
    progress.update(done: readBytes, total: fileBytes, unit: "bytes")
  }

  private func take(_ result: ValueMap, _ record: JSONRecordReader.Record, _ file: String) throws(Failure) {
    guard let problem = result["error"]?.map else {
      counts.imported += 1
      if !result.flag("changed") { counts.unchanged += 1 }
      return
    }
    // The record's fault is put aside; the node's own (no room, stopping) would put everything aside.
    guard problem.number("status") < 500 else { throw Failure(.failed, shown(problem.text("detail"))) }
    try putAside(record, file, Importer.reason(problem, record))
  }

  /// The node saw the record as one line of its own: a mistake in its JSON is found again here, with its place in the
  /// file.
  private static func reason(_ problem: ValueMap, _ record: JSONRecordReader.Record) -> String {
    guard problem["line"] != nil else { return problem.text("detail") }
    do throws(JSONError) {
      _ = try record.value(limits: ExtendedJSON.Limits(byteCount: ServerLimit.documentBodyBytes))
      return problem.text("detail")
    } catch {
      return error.message
    }
  }

  /// Line breaks in JSON are white space: a record becomes one line, byte for byte as long as it was.
  private func line(_ record: JSONRecordReader.Record) -> [UInt8] {
    record.bytes.map { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") ? UInt8(ascii: " ") : $0 } + [
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
