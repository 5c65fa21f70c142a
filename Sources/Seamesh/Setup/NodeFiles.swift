import Engine
import Identity
import Replication
import Storage
import Wire

/// What a data directory says of its node before the store is opened.
struct NodeFiles: Sendable {
  let directory: DataDirectory
  let fleet: FleetID
  let deviceKey: SigningKey

  var device: DeviceID { DeviceID(deviceKey.publicKey) }

  /// Names the fleet. The last file that a set-up writes: what has it is a node's directory.
  static let fleetFile = "fleet.id"

  /// A file that is there and cannot be read, as after a copy that lost its permissions, says so as well.
  static func isSetUp(_ directory: String) -> Bool { DirectoryContents(directory).standing == .node }

  static func load(_ directory: DataDirectory) throws(NodeError) -> NodeFiles {
    do throws(FileError) {
      let content = try PrivateFile.content(of: directory.file(fleetFile))
      let text = String(decoding: content, as: UTF8.self).split(whereSeparator: \.isWhitespace).first ?? ""
      guard let fleet = FleetID(text: text) else {
        throw FileError.damaged(path: directory.file(fleetFile), reason: "it does not hold a fleet id")
      }
      return NodeFiles(directory: directory, fleet: fleet, deviceKey: try KeyFile.device.loadKey(in: directory))
    } catch {
      throw NodeError(error)
    }
  }

  /// From here on the directory is a node's.
  func finish() throws(NodeError) {
    do throws(FileError) {
      try PrivateFile.create(directory.file(NodeFiles.fleetFile), Array((fleet.text + "\n").utf8))
      try PrivateFile.remove(directory.file(SetupMarker.fileName))
    } catch {
      throw NodeError(error)
    }
  }

  /// The fleet's root key, where it lies here now.
  var root: RootSigner? {
    guard let key = try? KeyFile.fleetRoot.loadKey(in: directory) else { return nil }
    return RootSigner(key: key.publicKey, sign: key.sign)
  }
}

extension NodeError {
  init(_ error: FileError) { self.init(.failed, "\(error)") }

  init(_ error: StoreError) {
    let code: Code =
      switch error {
      case .diskFull: .diskFull
      case .readOnly: .readOnly
      case .busy, .interrupted, .alreadyRunning, .backupUnderWay: .busy
      case .limitReached: .tooLarge
      case .missing: .notFound
      case .damagedDocument: .damaged
      case .inputOutput, .damaged, .tornByLostLog, .damagedLog, .damagedRun, .damagedPayload, .removed: .storeFailed
      case .newerVersion, .olderVersion: .otherVersion
      case .alreadyExists, .notAStore, .otherFleet, .otherDevice: .unprocessable
      default: .failed
      }
    self.init(code, error.sentence)
  }

  /// - Parameter edits: of the change that was refused.
  init(_ error: EngineError, edits: Int = 1) {
    let code: Code =
      switch error {
      case .notAMember, .notPermitted: .notPermitted
      case .changeTooLarge, .payloadsTooLarge, .tooManyOperations, .tooManyPartitions, .tooManyStatements: .tooLarge
      case .malformedChange, .undeletable: .unprocessable
      case .renewedLately, .otherMembershipLately, .versionNotHere, .versionDamaged: .busy
      case .changedSinceRead: .preconditionFailed
      case .ownRunNotTaken, .payloadNotThere, .payloadSpoiled, .noFleet: .failed
      }
    var lack: LackOfRight?
    if case .notPermitted(let name, let level, _) = error {
      lack = LackOfRight(partition: name.text.string, has: PartitionAccess(level), needs: .write)
    }
    let words = edits > 1 ? error.descriptionOfSeveral : "\(error)"
    self.init(code, words, lackOfRight: lack, limit: NodeError.limit(error))
  }

  private static func limit(_ error: EngineError) -> Limit? {
    switch error {
    case .changeTooLarge(_, let limit), .payloadsTooLarge(_, let limit): Limit(limit, "bytes")
    case .tooManyOperations(let limit): Limit(limit, "operations")
    default: nil
    }
  }

  init(_ error: InvitationError) {
    let code: Code =
      switch error {
      case .notAnAdmin, .rootKeyMissing: .notPermitted
      case .tooMany, .tooLong: .unprocessable
      case .notOpen: .notFound
      case .used: .unprocessable
      }
    self.init(code, "\(error)")
  }

  /// Whatever the engine, the store or a file threw.
  init(any error: any Error) { self.init(any: error, edits: 1) }

  init(any error: any Error, edits: Int) {
    switch error {
    case let error as NodeError: self = error
    case let error as StoreError: self.init(error)
    case let error as FileError: self.init(error)
    case let error as EngineError: self.init(error, edits: edits)
    case let error as DamagedDocument: self.init(.damaged, "\(error)")
    case let error as RightsError: self.init(error)
    case let error as InvitationError: self.init(error)
    case let error as any StoreFailure: self.init(error.isFatal ? .storeFailed : .failed, "\(error)")
    default: self.init(.failed, words(of: error))
    }
  }
}
