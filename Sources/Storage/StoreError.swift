import Engine
import Replication

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// Why the store could not be opened, read or written. `sentence` is for people; `description`, for the log, has what SQLite and
/// the rows say besides.
package enum StoreError: Error, Hashable, Sendable {
  /// Another process holds the directory (K8). The process number is unknown where it could not be written down.
  case alreadyRunning(process: Int32?, directory: String)
  case newerVersion(found: Int, known: Int, path: String)
  /// Of a format that no migration leads on from.
  case olderVersion(found: Int, oldest: Int, path: String)
  /// The file is not a store of this program.
  case notAStore(path: String)
  /// The store belongs to another fleet (S15).
  case otherFleet(expected: FleetID, found: FleetID)
  /// The store belongs to another device of this fleet (S15).
  case otherDevice(expected: DeviceID, found: DeviceID)
  case missing(path: String)
  /// A write-ahead log without its database: opened, SQLite would drop it with the commits that stand in it alone.
  case logAlone(path: String)
  case alreadyExists(path: String)
  /// Another copy is on its way there.
  case backupUnderWay(path: String)
  /// Nothing was written; reading goes on, and a later write may succeed.
  case diskFull(String)
  /// Nothing was written; reading goes on, and a later write may succeed.
  case readOnly(String)
  /// Whether the last write reached the disk is unknown: stop acknowledging, close, open again (K3).
  case inputOutput(String)
  /// A file of the open store was deleted or replaced: what is written would be lost with the process.
  case removed(path: String)
  /// The file's content breaks a rule of the format. Opening again does not help.
  case damaged(String)
  /// The write-ahead log is gone, and what it had left in the database does not fit together.
  case tornByLostLog(String)
  /// The row of one document does not read. Its changes are in the log beside it, and nothing else is concerned.
  case damagedDocument(String)
  /// A row of the log does not read. What needs none of its changes goes on.
  case damagedLog(String)
  /// A run of the log is not as it was written.
  case damagedRun(DamagedRun)
  /// The payload that travelled apart from a run is not as it was written.
  case damagedPayload(of: DamagedRun)
  /// A reader was stopped, or ran into its time limit.
  case interrupted
  case busy
  /// A bounded table has no room for more.
  case limitReached(what: String, limit: Int)
  /// A number that no store can hold.
  case outOfRange(what: String, value: UInt64)
  /// A call of the operating system outside SQLite failed.
  case system(operation: String, path: String, code: Int32)
  case sqlite(SQLiteError)

  init(_ error: SQLiteError) {
    if error.isDiskFull {
      self = .diskFull(error.detail)
    } else if error.isReadOnly {
      self = .readOnly(error.message)
    } else if error.isIOError {
      self = .inputOutput(error.detail)
    } else if error.isCorrupt {
      self = .damaged(error.detail)
    } else if error.code == .interrupted {
      self = .interrupted
    } else if error.code == .busy {
      self = .busy
    } else {
      self = .sqlite(error)
    }
  }

  /// A failed call outside SQLite.
  static func system(_ operation: String, _ path: String, _ code: Int32 = errno) -> StoreError {
    switch code {
    case ENOSPC, EDQUOT: .diskFull("\(operation) \(path): no space left")
    case EROFS: .readOnly("\(path) lies on a file system that is mounted read-only; mount it for writing")
    case EACCES, EPERM: .readOnly("\(operation) \(path): not permitted; look whose it is")
    case EIO: .inputOutput("\(operation) \(path): input/output error")
    default: .system(operation: operation, path: path, code: code)
    }
  }

  /// After these the open store must not be written again.
  package var isFatal: Bool {
    switch self {
    case .inputOutput, .removed, .damaged, .damagedLog, .damagedRun, .damagedPayload: true
    default: false
    }
  }

  /// A file could not be opened: mostly for want of descriptors.
  var isOfOpening: Bool {
    if case .sqlite(let error) = self { error.code == .cannotOpen } else { false }
  }

  package var runAtFault: DamagedRun? {
    switch self {
    case .damagedRun(let run), .damagedPayload(let run): run
    default: nil
    }
  }

  package var isOfPayload: Bool { if case .damagedPayload = self { true } else { false } }

  package var isOfOneRow: Bool {
    switch self {
    case .damagedDocument, .damagedLog, .damagedRun, .damagedPayload: true
    default: false
    }
  }
}

extension StoreError: CustomStringConvertible {
  /// One sentence for a person.
  package var sentence: String {
    switch self {
    case .diskFull: "the disk is full, and nothing was written: free some space, then try again"
    case .inputOutput: "the disk failed"
    case .damaged: "the store is damaged"
    case .tornByLostLog: StoreError.torn
    case .damagedDocument: "the document is damaged here"
    case .damagedLog, .damagedRun, .damagedPayload: "the store's log is damaged"
    case .sqlite(let error): "the store failed: \(error.message)"
    default: description
    }
  }

  private static let torn =
    "seamesh.db-wal is gone, and seamesh.db, into which a part of it had been written, is damaged without it"

  package var description: String {
    switch self {
    case .alreadyRunning(let process?, let directory):
      "another seamesh node (process \(process)) is using \(directory): stop it first"
    case .alreadyRunning(nil, let directory): "another seamesh node is using \(directory): stop it first"
    case .newerVersion(let found, let known, let path):
      "\(path) was written by a newer seamesh (format \(found); this one knows up to \(known)): use that version"
    case .olderVersion(let found, let oldest, let path):
      """
      \(path) has format \(found), of before the formats were final (this one reads from \(oldest) on): export with the version \
      that wrote it, then set the directory aside and begin anew
      """
    case .notAStore(let path): "\(path) is not a seamesh store"
    case .otherFleet(let expected, let found):
      "the store belongs to fleet \(short(found.digest)), but this device is in fleet \(short(expected.digest))"
    case .otherDevice(let expected, let found):
      "the store belongs to device \(short(found.digest)), but the key here is that of \(short(expected.digest))"
    case .missing(let path): "there is no store at \(path)"
    case .logAlone(let path): "\(path) is there without its database, and may hold writes that nothing else holds"
    case .alreadyExists(let path): "\(path) exists already and is left as it is"
    case .backupUnderWay(let path):
      "a backup to \(path) is under way, also where the command that asked for it has ended: wait for it, or name another file"
    case .diskFull(let detail): "the disk is full: \(detail)"
    case .readOnly(let detail): "the data directory cannot be written: \(detail)"
    case .inputOutput(let detail): "the disk failed: \(detail)"
    case .removed(let path): "\(path) was deleted or replaced under the running node"
    case .damaged(let detail): "the store is damaged: \(detail)"
    case .tornByLostLog(let detail): "\(StoreError.torn): \(detail)"
    case .damagedDocument(let detail): "the document is damaged here: \(detail)"
    case .damagedLog(let detail): "the store's log is damaged: \(detail)"
    case .damagedRun(let run): "the store's log is damaged: \(run)"
    case .damagedPayload(let run): "the store's log is damaged: the payload of \(run)"
    case .interrupted: "reading took too long or was stopped"
    case .busy: "the store is busy"
    case .limitReached(let what, let limit): "there is no room for more \(what): the limit is \(limit)"
    case .outOfRange(let what, let value): "\(what) \(value) is out of range"
    case .system(let operation, let path, let code): "\(operation) \(path) failed: \(String(cString: strerror(code)))"
    case .sqlite(let error): "the store failed: \(error.detail)"
    }
  }

  /// The first eight bytes in hex: enough for a person to tell ids apart.
  private func short(_ digest: Digest) -> String {
    let text = String(digest.words.0, radix: 16)
    return String(repeating: "0", count: 16 - text.count) + text
  }
}
