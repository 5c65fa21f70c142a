import Replication

/// What a node remembers of its replica outside the database, so that a database that was rolled back, copied or swapped
/// is noticed before it names a change a second time (invariant I6).
package struct ReplicaSidecar: Hashable, Sendable {
  /// Random, drawn with the database and kept in both.
  package var store: UUIDValue
  /// Nil until the first own write.
  package var replica: Incarnation?
  /// Ids that were left for a while; a file from before there were any names none.
  package var resting: [Resting] = []
  /// A number of own commits that the database has reached for certain; it may have gone further.
  package var reached: UInt64
  /// What the store's write-ahead log is to hold at the next start.
  package var log = RenewalEvidence.Sidecar.Log.closed
  /// Starts that the database had counted, this one among them, when the log was opened.
  package var starts: UInt64 = 0
  package var host: HostFacts

  package struct Incarnation: Hashable, Sendable {
    package let id: ReplicaID
    package let nonce: UUIDValue
    package init(id: ReplicaID, nonce: UUIDValue) { (self.id, self.nonce) = (id, nonce) }
  }

  package struct Resting: Hashable, Sendable {
    package let incarnation: Incarnation
    /// Of where its chains end.
    package let ends: Digest
    package init(incarnation: Incarnation, ends: Digest) { (self.incarnation, self.ends) = (incarnation, ends) }
  }

  package static let fileName = "replica.state"

  package init(store: UUIDValue, replica: Incarnation?, reached: UInt64, host: HostFacts) {
    (self.store, self.replica, self.reached, self.host) = (store, replica, reached, host)
  }
}

extension ReplicaSidecar {
  package enum Loaded: Equatable, Sendable {
    case absent
    case damaged(reason: String)
    case present(ReplicaSidecar)
  }

  private static let title = "Seamesh replica state, version 2"
  /// It says nothing of the log.
  private static let firstTitle = "Seamesh replica state, version 1"
  private static let remarks = [
    "Written by the node; tells it whether its database was put back from an older copy.",
    "Do not edit, copy or delete: the node then starts a new replica, which is safe but leaves a trace for ever.",
  ]
  private static let none = "none"

  /// A file that is absent or damaged is an answer, not an error: it is evidence (fault S10).
  package static func load(from directory: DataDirectory) throws(FileError) -> Loaded {
    do throws(FileError) {
      return parse(try PrivateFile.content(of: directory.file(fileName)))
    } catch {
      switch error {
      case .missing: return .absent
      case .tooLarge(_, let limit): return .damaged(reason: "it is larger than \(limit) bytes")
      case .exists, .failed, .notRegular, .otherOwner, .openToOthers, .sharedDirectory, .damaged: throw error
      }
    }
  }

  /// Atomic and durable once it returns. `reached` must be committed durably before.
  package func save(to directory: DataDirectory) throws(FileError) {
    try PrivateFile.replace(directory.file(ReplicaSidecar.fileName), Array(text.utf8))
  }

  var text: String {
    FieldFile(
      title: ReplicaSidecar.title, remarks: ReplicaSidecar.remarks,
      fields: [
        ("store", store.text), ("replica", replica?.id.text ?? ReplicaSidecar.none),
        ("nonce", replica?.nonce.text ?? ReplicaSidecar.none), ("reached", String(reached)),
        ("log", log.rawValue), ("starts", String(starts)), ("machine", host.machineText.string),
        ("inode", String(host.databaseInode)),
      ] + resting.map { ("resting", $0.text) }
    ).text
  }

  static func parse(_ content: [UInt8]) -> Loaded {
    do throws(FieldFile.Invalid) {
      if let first = try? FieldFile.parse(content, title: firstTitle) { return .present(try ReplicaSidecar(first)) }
      let file = try FieldFile.parse(content, title: title)
      var sidecar = try ReplicaSidecar(file)
      sidecar.log = try file.value("log", RenewalEvidence.Sidecar.Log.init(rawValue:))
      sidecar.starts = try file.value("starts") { UInt64($0) }
      // One that another build wrote otherwise costs no more than that id.
      sidecar.resting = file.values("resting").compactMap(Resting.init(text:))
      return .present(sidecar)
    } catch {
      return .damaged(reason: error.reason)
    }
  }

  private init(_ file: FieldFile) throws(FieldFile.Invalid) {
    store = try file.value("store", UUIDValue.init(text:))
    let id = try file.value("replica") { ReplicaSidecar.optional($0, ReplicaID.init(text:)) }
    let nonce = try file.value("nonce") { ReplicaSidecar.optional($0, UUIDValue.init(text:)) }
    switch (id, nonce) {
    case (let id?, let nonce?): replica = Incarnation(id: id, nonce: nonce)
    case (nil, nil): replica = nil
    case (nil, _?), (_?, nil): throw .field("replica")
    }
    reached = try file.value("reached") { UInt64($0) }
    host = HostFacts(
      machine: try file.value("machine") { ReplicaSidecar.optional($0, Digest.init(text:)) },
      databaseInode: try file.value("inode") { UInt64($0) })
  }

  /// `.some(nil)` for "none", nil for text that is wrong.
  private static func optional<Parsed>(_ text: String, _ parse: (String) -> Parsed?) -> Parsed?? {
    text == none ? .some(nil) : parse(text).map { .some($0) }
  }
}

extension ReplicaSidecar.Resting {
  fileprivate var text: String { [incarnation.id.text, incarnation.nonce.text, ends.text].joined(separator: " ") }

  fileprivate init?(text: String) {
    let words = text.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
    guard words.count == 3, let id = ReplicaID(text: words[0]), let nonce = UUIDValue(text: words[1]),
      let ends = Digest(text: words[2])
    else { return nil }
    self.init(incarnation: .init(id: id, nonce: nonce), ends: ends)
  }
}
