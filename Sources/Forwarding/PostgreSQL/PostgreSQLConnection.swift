import CPostgreSQL
import Glibc
import Links
import Synchronization

/// One connection, used by one thread, that never blocks for longer than it is told. Looking up a host's name alone is libpq's
/// and blocks as long as the name server is silent.
final class PostgreSQLConnection {
  private let handle: OpaquePointer
  private let address: PostgreSQLAddress
  private let stop: StopPipe
  private var metering: PostgreSQLMetering
  private static let connectMilliseconds: Int64 = 20_000

  /// - Parameter meter: keeps account of it, and may say that there is to be none; nil: the link is free.
  init(
    _ address: PostgreSQLAddress, environment: [String: String], stop: StopPipe, meter: (any SocketMeter)? = nil
  ) throws(BackendProblem) {
    (self.address, self.stop, metering) = (address, stop, PostgreSQLMetering(meter))
    let parameters = address.connectionParameters(environment: environment).sorted { $0.key < $1.key }
    guard let handle = PostgreSQLConnection.start(parameters) else {
      throw BackendProblem(.refused, "there is no memory for a connection")
    }
    self.handle = handle
    // With codes in its messages.
    PQsetErrorVerbosity(handle, PQERRORS_VERBOSE)
    _ = PQsetNoticeProcessor(handle, { _, _ in }, nil)
    try establish()
    PQsetnonblocking(handle, 1)
  }

  deinit {
    metering.end(handle)
    PQfinish(handle)
  }

  private static func start(_ parameters: [(key: String, value: String)]) -> OpaquePointer? {
    let keys = parameters.map { strdup($0.key) }
    let values = parameters.map { strdup($0.value) }
    defer { for pointer in keys + values { free(pointer) } }
    let keyPointers: [UnsafePointer<CChar>?] = keys.map { UnsafePointer($0) } + [nil]
    let valuePointers: [UnsafePointer<CChar>?] = values.map { UnsafePointer($0) } + [nil]
    return PQconnectStartParams(keyPointers, valuePointers, 0)
  }

  private func establish() throws(BackendProblem) {
    let deadline = Deadline(milliseconds: PostgreSQLConnection.connectMilliseconds)
    guard PQstatus(handle) != CONNECTION_BAD else { throw connectFailure() }
    var status = PGRES_POLLING_WRITING
    while status != PGRES_POLLING_OK {
      // Each call may have taken another socket, for the next address or without TLS.
      guard metering.mayGoOn(handle) else { throw linkClosed() }
      try wait(status == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline)
      guard metering.mayGoOn(handle) else { throw linkClosed() }
      status = PQconnectPoll(handle)
      if status == PGRES_POLLING_FAILED { throw connectFailure() }
    }
  }

  private func connectFailure() -> BackendProblem {
    PostgreSQLProblems.connecting(String(cString: PQerrorMessage(handle)), to: address)
  }

  // MARK: Queries

  /// One statement, which is a transaction of its own.
  func query(
    _ sql: String, _ parameters: [PostgreSQLParameter] = [], milliseconds: Int64 = 120_000
  ) throws(BackendProblem) -> PostgreSQLRows {
    guard metering.mayGoOnWaiting(handle) else { throw linkClosed() }
    try send(sql, parameters)
    return try finish(Deadline(milliseconds: milliseconds))
  }

  /// Statements without parameters, one after the other in one transaction.
  func script(_ sql: String) throws(BackendProblem) {
    guard metering.mayGoOnWaiting(handle) else { throw linkClosed() }
    guard PQsendQuery(handle, sql) == 1 else { throw lost() }
    _ = try finish(Deadline(milliseconds: 120_000))
  }

  private func send(_ sql: String, _ parameters: [PostgreSQLParameter]) throws(BackendProblem) {
    let types = parameters.map(\.type)
    let lengths = parameters.map { Int32(clamping: $0.bytes.count) }
    let formats = [Int32](repeating: 1, count: parameters.count)
    let values = parameters.map { PostgreSQLConnection.copy($0.bytes) }
    metering.byteCount += parameters.reduce(UInt64(sql.utf8.count)) { $0 + UInt64($1.bytes.count) }
    defer { for value in values { value.deallocate() } }
    let pointers: [UnsafePointer<CChar>?] = values.map { UnsafePointer($0) }
    let sent = PQsendQueryParams(
      handle, sql, Int32(clamping: parameters.count), types, pointers, lengths, formats, 1)
    guard sent == 1 else { throw lost() }
  }

  /// A null pointer would be a null value, which an empty one is not.
  private static func copy(_ bytes: [UInt8]) -> UnsafeMutablePointer<CChar> {
    let copy = UnsafeMutablePointer<CChar>.allocate(capacity: max(1, bytes.count))
    bytes.withUnsafeBytes { source in
      guard let start = source.baseAddress else { return }
      UnsafeMutableRawPointer(copy).copyMemory(from: start, byteCount: source.count)
    }
    return copy
  }

  /// The rows of the last statement; the first refusal is thrown once the server is ready for the next.
  private func finish(_ deadline: Deadline) throws(BackendProblem) -> PostgreSQLRows {
    var rows: [[[UInt8]?]] = []
    var problem: BackendProblem?
    try flush(deadline)
    while let result = try nextResult(deadline) {
      defer { PQclear(result) }
      switch PQresultStatus(result) {
      case PGRES_TUPLES_OK:
        rows = PostgreSQLConnection.rows(of: result)
        metering.byteCount += rows.reduce(0) { $0 + $1.reduce(0) { $0 + UInt64($1?.count ?? 0) } }
      case PGRES_COMMAND_OK, PGRES_EMPTY_QUERY: break
      default: problem = problem ?? refusal(result)
      }
    }
    metering.note(handle)
    if let problem { throw problem }
    return PostgreSQLRows(rows: rows)
  }

  private func flush(_ deadline: Deadline) throws(BackendProblem) {
    while true {
      switch PQflush(handle) {
      case 0: return
      case 1:
        // The server may have to say something before it takes more.
        let ready = try wait(POLLIN | POLLOUT, deadline)
        if ready & POLLIN != 0, PQconsumeInput(handle) == 0 { throw lost() }
      default: throw lost()
      }
    }
  }

  private func nextResult(_ deadline: Deadline) throws(BackendProblem) -> OpaquePointer? {
    while PQisBusy(handle) == 1 {
      try wait(POLLIN, deadline)
      guard PQconsumeInput(handle) == 1 else { throw lost() }
    }
    return PQgetResult(handle)
  }

  private static func rows(of result: OpaquePointer) -> [[[UInt8]?]] {
    (0..<PQntuples(result)).map { row in
      (0..<PQnfields(result)).map { column in
        guard PQgetisnull(result, row, column) == 0 else { return nil }
        let start = UnsafeRawPointer(PQgetvalue(result, row, column))
        return Array(UnsafeRawBufferPointer(start: start, count: Int(PQgetlength(result, row, column))))
      }
    }
  }

  private func refusal(_ result: OpaquePointer) -> BackendProblem {
    guard let code = PQresultErrorField(result, Int32(UInt8(ascii: "C"))) else { return lost() }
    let words = PQresultErrorField(result, Int32(UInt8(ascii: "M"))).map { String(cString: $0) } ?? ""
    return PostgreSQLProblems.answered(
      String(cString: code), PostgreSQLProblems.sentence(words, address), address)
  }

  /// The connection ended; what was under way may have come about or not.
  private func lost() -> BackendProblem {
    BackendProblem(.refused, "the connection to \(address.shown) was lost")
  }

  private func linkClosed() -> BackendProblem {
    BackendProblem(
      .noRoute, "the link to \(address.shown) is closed (class none)",
      remedy: "Give it another class: seamesh links --use=CLASS.")
  }

  @discardableResult
  private func wait(_ events: Int32, _ deadline: Deadline) throws(BackendProblem) -> Int32 {
    while true {
      var watched = [
        pollfd(fd: PQsocket(handle), events: Int16(truncatingIfNeeded: events), revents: 0),
        pollfd(fd: stop.descriptor, events: Int16(truncatingIfNeeded: POLLIN), revents: 0),
      ]
      let left = deadline.milliseconds
      guard left > 0 else { throw BackendProblem(.noRoute, "\(address.shown) does not answer in time") }
      let ready = poll(&watched, 2, Int32(clamping: min(left, metering.patienceMilliseconds)))
      if watched[1].revents != 0 { throw BackendProblem(.interrupted, "the node is stopping") }
      guard metering.mayGoOnWaiting(handle) else { throw linkClosed() }
      if ready > 0 { return Int32(watched[0].revents) }
    }
  }
}

private struct Deadline {
  private let end: ContinuousClock.Instant
  init(milliseconds: Int64) { end = .now + .milliseconds(milliseconds) }
  var milliseconds: Int64 { Int64((end - .now) / .milliseconds(1)) }
}

/// Ends whatever waits for a server. Once pulled it stays so.
final class StopPipe: Sendable {
  private let ends: (read: Int32, write: Int32)
  private let isPulled = Mutex(false)

  init() throws(BackendProblem) {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw BackendProblem(.refused, "this process has too many files open") }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    self.ends = (ends[0], ends[1])
  }

  deinit {
    close(ends.read)
    close(ends.write)
  }

  /// Readable once it is pulled.
  var descriptor: Int32 { ends.read }

  func pull() {
    isPulled.withLock { pulled in
      guard !pulled else { return }
      pulled = true
      var byte: UInt8 = 1
      _ = write(ends.write, &byte, 1)
    }
  }
}
