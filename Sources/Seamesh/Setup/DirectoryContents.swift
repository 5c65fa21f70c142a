import Glibc
import Identity
import Replication
import Storage

/// Which of a node's files a directory holds, and what may therefore be done there. Asked before anything is opened or
/// written: no file of a node is ever replaced because another one is missing.
struct DirectoryContents {
  enum Item: String, CaseIterable, Sendable {
    case deviceKey = "device.key"
    case rootKey = "fleet-root.key"
    case fleet = "fleet.id"
    case sidecar = "replica.state"
    case database = "seamesh.db"
    case log = "seamesh.db-wal"
  }

  enum Standing: Equatable {
    /// Nothing of a node is here: a set-up may begin.
    case empty
    /// What is here was made by a set-up that did not come to its end. Nil: it cannot be read which, but it made nothing.
    case unfinished(SetupMarker?)
    case node
    /// Files of a node whose `fleet.id` has gone.
    case incomplete
  }

  enum StoreFiles: Equatable {
    case present
    /// Neither a database nor a log: what was in them is gone.
    case lost
    /// Opened, SQLite would drop it.
    case logAlone
    /// A restore was cut off between taking the old store away and putting the new one there.
    case halfRestored
    /// It is being filled from a ledger, and that did not come to its end.
    case halfFilled
  }

  let path: String
  let present: Set<Item>
  let standing: Standing
  let store: StoreFiles

  init(_ path: String) {
    let present = Set(Item.allCases.filter { DirectoryContents.holds($0, at: "\(path)/\($0.rawValue)") })
    (self.path, self.present) = (path, present)
    standing = DirectoryContents.standing(path, present)
    if DirectoryContents.exists("\(path)/\(LedgerFilling.markerFile)") {
      store = .halfFilled
    } else if present.contains(.database) {
      store = .present
    } else if DirectoryContents.exists("\(path)/\(StoreRestoring.fileName)") {
      store = .halfRestored
    } else {
      store = present.contains(.log) ? .logAlone : .lost
    }
  }

  /// An empty database or log is none. A file that cannot be looked at counts as there.
  private static func holds(_ item: Item, at path: String) -> Bool {
    guard exists(path) else { return false }
    guard item == .database || item == .log else { return true }
    var facts = stat()
    return stat(path, &facts) != 0 || facts.st_size > 0
  }

  private static func exists(_ path: String) -> Bool {
    var facts = stat()
    return lstat(path, &facts) == 0 || (errno != ENOENT && errno != ENOTDIR)
  }

  private static func standing(_ path: String, _ present: Set<Item>) -> Standing {
    if present.contains(.fleet) { return .node }
    guard let directory = try? DataDirectory(existing: path) else { return present.isEmpty ? .empty : .incomplete }
    let loaded = SetupMarker.load(from: directory)
    switch loaded {
    case .absent: return present.isEmpty ? .empty : .incomplete
    case .unreadable: return present.isEmpty ? .unfinished(nil) : .incomplete
    case .present(let marker): return made(present, by: marker, directory) ? .unfinished(marker) : .incomplete
    }
  }

  /// The device key is the first file that a set-up makes, and the last that is set aside; the sidecar is a running node's.
  private static func made(_ present: Set<Item>, by marker: SetupMarker, _ directory: DataDirectory) -> Bool {
    guard !present.isEmpty else { return true }
    guard !present.contains(.sidecar), let key = try? KeyFile.device.loadKey(in: directory) else { return false }
    return DeviceID(key.publicKey) == marker.device
  }
}

// MARK: What to tell a person

extension DirectoryContents {
  /// Why there is nothing to start or restore here; nil where there is a node with its key.
  var nodeRefusal: NodeError? {
    switch standing {
    case .empty:
      NodeError(.notFound, "\(path) holds no node: run seamesh init \(data), or seamesh join CODE \(data)")
    case .unfinished(let marker): DirectoryContents.unfinished(marker, path)
    case .incomplete: incomplete
    case .node:
      present.contains(.deviceKey)
        ? nil
        : NodeError(
          .failed,
          "\(path) has lost its device.key: put a copy of it back, or join again in another directory with --data")
    }
  }

  /// Why no set-up may begin here; nil where one may.
  var setupRefusal: NodeError? {
    switch standing {
    case .empty, .unfinished: nil
    case .incomplete: incomplete
    case .node: NodeError(.unprocessable, "\(path) is a node's directory already; give another one with --data")
    }
  }

  /// Why the store may not be opened; nil where it may, or where it is to be fetched anew.
  var storeRefusal: NodeError? {
    switch store {
    case .present, .lost: nil
    case .logAlone:
      NodeError(
        .failed,
        "\(path) holds seamesh.db-wal, which may have writes that nothing else has, but no seamesh.db: put that back, "
          + "or move seamesh.db-wal away to fetch everything anew from the fleet")
    case .halfRestored:
      NodeError(
        .failed,
        "a seamesh restore in \(path) was cut off: run it again; the store that was there is beside it as "
          + "seamesh.db.before-restore-TIME")
    case .halfFilled:
      NodeError(
        .failed,
        "filling \(path) from a ledger was cut off: run seamesh restore --from-ledger again, or remove "
          + "\(LedgerFilling.markerFile) there to go on with what came")
    }
  }

  private static func unfinished(_ marker: SetupMarker?, _ path: String) -> NodeError {
    let data = "--data \(path.shellQuoted)"
    return marker?.purpose == .found
      ? NodeError(.failed, "the set-up of \(path) was cut off: run seamesh init \(data) again")
      : NodeError(
        .failed,
        "\(path) was to enter a fleet and has not yet: run seamesh join CODE \(data) again, or seamesh init \(data) "
          + "for a new fleet")
  }

  private var incomplete: NodeError {
    let held = Item.allCases.filter(present.contains).map(\.rawValue)
    let isKeyMissing = !present.contains(.deviceKey)
    return NodeError(
      .failed,
      "\(path) holds \(held.joined(separator: ", ")), but its \(isKeyMissing ? "device.key and fleet.id have" : "fleet.id has")"
        + " gone: put \(isKeyMissing ? "them" : "it") back (fleet.id is the same on every device of the fleet), "
        + "or give another directory with --data")
  }

  private var data: String { "--data \(path.shellQuoted)" }
}

extension String {
  /// As a shell takes it for one word.
  package var shellQuoted: String {
    let isPlain = utf8.allSatisfy { byte in
      switch byte {
      case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
      default: "/._-+:@%,=".utf8.contains(byte)
      }
    }
    return isPlain && !isEmpty
      ? self : "'" + split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
  }
}
