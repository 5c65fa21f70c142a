import Replication

/// Cuts a stream into records: the objects of one JSON array, or objects one after another (JSON lines, or spread over
/// lines). Only brackets and quotation marks are looked at; what is inside a record is for ``Record/value(limits:)``.
///
/// Feed it with ``append(_:)`` and take ``next()`` until it answers nil; call ``finish()`` at the end of the input and
/// take the rest. A broken record comes as a failure, and reading goes on at the next place that looks like a record's
/// beginning (see ``JSONSkipScan``). Memory: one record and one chunk.
package struct JSONRecordReader: Sendable {
  /// Above this a record is skipped; much more than a document may have, so that it can be reported with its place.
  package static let recordByteLimit = 16 << 20
  /// Of a failed record only its beginning is kept, for people to recognise it.
  package static let failureByteLimit = 64 << 10

  package struct Record: Sendable, Equatable {
    /// Of the opening brace, from 1.
    package let line: Int
    package let column: Int
    /// Of the opening brace in the stream.
    package let offset: Int
    package let bytes: [UInt8]

    /// Errors have their place in the stream, not in the record.
    package func value(limits: ExtendedJSON.Limits = .document) throws(JSONError) -> ValueMap {
      do throws(JSONError) {
        return try ExtendedJSON.parseMap(bytes, limits: limits)
      } catch {
        throw error.moved(toLine: line, column: column, offset: offset)
      }
    }
  }

  package struct Failure: Sendable, Equatable {
    /// All that was skipped.
    package let lines: ClosedRange<Int>
    package let byteCount: Int
    /// The first ``JSONRecordReader/failureByteLimit`` of the skipped bytes.
    package let bytes: [UInt8]
    package let error: JSONError
  }

  package enum Item: Sendable, Equatable {
    case record(Record)
    case failure(Failure)
  }

  private struct Place {
    /// In `buffer`.
    var index = 0
    var line = 1
    var column = 1
  }

  private enum State {
    /// Nothing but white space and a byte order mark was seen.
    case start
    case betweenLines
    /// In the array, before an element; `]` may come only if the array is empty.
    case beforeElement(mayEnd: Bool)
    case afterElement
    case record(Place, JSONRecordScan)
    case skipping(Place, JSONSkipScan, JSONError)
    case end
  }

  private let byteLimit: Int
  private var buffer: [UInt8] = []
  /// Bytes of the stream before `buffer`.
  private var dropped = 0
  private var place = Place()
  private var state = State.start
  private var isArray = false
  private var isFinished = false
  private var skipped: [UInt8] = []
  private var skippedCount = 0

  package init(recordByteLimit: Int = JSONRecordReader.recordByteLimit) { byteLimit = recordByteLimit }

  package mutating func append(_ bytes: some Collection<UInt8>) {
    var keep = place.index
    if case .record(let start, _) = state { keep = start.index }
    buffer.removeFirst(keep)
    dropped += keep
    place.index -= keep
    if case .record(var start, let scan) = state {
      start.index = 0
      state = .record(start, scan)
    }
    buffer.append(contentsOf: bytes)
  }

  /// No more bytes will come.
  package mutating func finish() { isFinished = true }

  /// Nil when more bytes are needed, or when all has been read.
  package mutating func next() -> Item? {
    while place.index < buffer.count {
      if let item = take(buffer[place.index]) { return item }
    }
    return isFinished ? takeEnd() : nil
  }

  private mutating func take(_ byte: UInt8) -> Item? {
    switch state {
    case .record(let start, let scan): takeInRecord(start, scan)
    case .skipping(let start, let scan, let error): takeWhileSkipping(byte, start, scan, error)
    case .start, .betweenLines, .beforeElement, .afterElement, .end: takeBetween(byte)
    }
  }

  private mutating func advance(over byte: UInt8) {
    place.index += 1
    if byte == UInt8(ascii: "\n") {
      (place.line, place.column) = (place.line + 1, 1)
    } else if byte & 0xc0 != 0x80 {
      place.column += 1
    }
  }

  private func error(_ kind: JSONError.Kind) -> JSONError {
    JSONError(kind, offset: dropped + place.index, line: place.line, column: place.column)
  }

  // MARK: Between records

  private mutating func takeBetween(_ byte: UInt8) -> Item? {
    switch (state, byte) {
    case (_, 0x20), (_, 0x09), (_, 0x0a), (_, 0x0d): advance(over: byte)
    case (.start, 0xef), (.start, 0xbb), (.start, 0xbf):
      guard [0xef, 0xbb, 0xbf][min(dropped + place.index, 2)] == byte else { return fail(.notAnObject) }
      place.index += 1
    case (.start, UInt8(ascii: "[")):
      isArray = true
      advance(over: byte)
      state = .beforeElement(mayEnd: true)
    case (.start, UInt8(ascii: "{")), (.betweenLines, UInt8(ascii: "{")), (.beforeElement, UInt8(ascii: "{")):
      state = .record(place, JSONRecordScan())
    case (.beforeElement(mayEnd: true), UInt8(ascii: "]")), (.afterElement, UInt8(ascii: "]")):
      advance(over: byte)
      state = .end
    case (.afterElement, UInt8(ascii: ",")):
      advance(over: byte)
      state = .beforeElement(mayEnd: false)
    case (.afterElement, UInt8(ascii: "{")):
      // Reading goes on as if the comma were there.
      state = .beforeElement(mayEnd: false)
      return emptyFailure(.unexpectedByte(byte, expected: "',' or ']'"))
    case (.beforeElement, UInt8(ascii: "]")):
      state = .afterElement
      return emptyFailure(.unexpectedByte(byte, expected: "an object"))
    case (.afterElement, _): return fail(.unexpectedByte(byte, expected: "',' or ']'"))
    case (.end, _): return fail(.trailingContent)
    default: return fail(.notAnObject)
    }
    return nil
  }

  private func emptyFailure(_ kind: JSONError.Kind) -> Item {
    .failure(Failure(lines: place.line...place.line, byteCount: 0, bytes: [], error: error(kind)))
  }

  // MARK: Records

  /// Takes all bytes there are, up to the record's end.
  private mutating func takeInRecord(_ start: Place, _ scan: JSONRecordScan) -> Item? {
    var scan = scan
    while place.index < buffer.count {
      let byte = buffer[place.index]
      let outcome = scan.take(byte)
      if case .failed(let kind) = outcome { return fail(kind, from: start) }
      advance(over: byte)
      if place.index - start.index > byteLimit {
        return fail(.tooLarge(byteCount: place.index - start.index, limit: byteLimit), from: start)
      }
      if case .complete = outcome {
        state = isArray ? .afterElement : .betweenLines
        return .record(
          Record(
            line: start.line, column: start.column, offset: dropped + start.index,
            bytes: Array(buffer[start.index..<place.index])))
      }
    }
    state = .record(start, scan)
    return nil
  }

  // MARK: Failures

  /// What begins here, or at `start`, is skipped.
  private mutating func fail(_ kind: JSONError.Kind, from start: Place? = nil) -> Item? {
    let error = error(kind)
    let isAtEnd = if case .end = state { start == nil } else { false }
    place = start ?? place
    let extent: JSONSkipScan.Extent = isAtEnd ? .everything : isArray ? .element : start == nil ? .line : .object
    state = .skipping(place, JSONSkipScan(extent, column: place.column), error)
    (skipped, skippedCount) = ([], 0)
    return nil
  }

  private mutating func takeWhileSkipping(
    _ byte: UInt8, _ start: Place, _ scan: JSONSkipScan, _ error: JSONError
  ) -> Item? {
    var scan = scan
    let outcome = scan.take(byte)
    if outcome != .resumeBefore {
      if skipped.count < JSONRecordReader.failureByteLimit { skipped.append(byte) }
      skippedCount += 1
      advance(over: byte)
    }
    state = .skipping(start, scan, error)
    return outcome == .more ? nil : failure(start, scan, error)
  }

  private mutating func failure(_ start: Place, _ scan: JSONSkipScan, _ error: JSONError) -> Item {
    switch scan.extent {
    case .line, .object: state = .betweenLines
    case .element: state = scan.foundLine ? .beforeElement(mayEnd: false) : .afterElement
    case .everything: state = .end
    }
    let last = max(start.line, scan.foundLine || place.column == 1 ? place.line - 1 : place.line)
    return .failure(Failure(lines: start.line...last, byteCount: skippedCount, bytes: skipped, error: error))
  }

  private mutating func takeEnd() -> Item? {
    switch state {
    case .start, .betweenLines, .end: return nil
    case .beforeElement, .afterElement:
      state = .end
      return emptyFailure(.unexpectedEnd(expected: "']'"))
    case .record(let start, _):
      _ = fail(.unexpectedEnd(expected: "'}'"), from: start)
      return next()
    case .skipping(let start, let scan, let error):
      let item = failure(start, scan, error)
      // One failure for one missing end is enough.
      state = .end
      return item
    }
  }
}
