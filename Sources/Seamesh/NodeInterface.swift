import Replication

/// What a node offers to those who use it: the local HTTP interface and the library are built on this alone.
///
/// Every method may be called from any thread, blocks until its answer is known (a write: until it is on disk), and
/// throws ``NodeError``.
package protocol NodeInterface: Sendable {
  func status() throws(NodeError) -> NodeStatus
  func peers() throws(NodeError) -> [PeerStatus]
  func devices() throws(NodeError) -> [DeviceStatus]
  /// In byte order of their names. The first state digest costs a pass over the documents, later ones follow the
  /// changes: one that is not known after a short while is told as such, and computed behind the call.
  func partitions(withDigests: Bool) throws(NodeError) -> [PartitionStatus]

  /// A name, or a prefix followed by `*`.
  /// Answers what stands in the way, as sentences: it is wanted all the same, and comes once that has gone.
  @discardableResult
  func subscribe(_ pattern: Text) throws(NodeError) -> [String]
  func unsubscribe(_ pattern: Text) throws(NodeError)
  /// Names and patterns, in byte order.
  func subscriptions() throws(NodeError) -> [Text]
  /// A code with which one other device enters the fleet.
  func invite(_ request: InviteRequest) throws(NodeError) -> IssuedInvitation
  /// Those of this device that are open, ascending by their numbers.
  func invitations() throws(NodeError) -> [InvitationStatus]
  func cancelInvitation(_ serial: UInt64) throws(NodeError)

  func change(_ change: RightsChange) throws(NodeError) -> RightsOutcome
  func permissions(_ partition: PartitionName?, who: String?) throws(NodeError) -> PermissionReport
  func rules() throws(NodeError) -> [RightStatus]

  func read(_ partition: PartitionName, _ collection: Text, id: Value) throws(NodeError) -> StoredDocument?
  /// For whoever may ask twice: asked again under the same key with the same body it makes no second document, refused where
  /// that was deleted. Refused with `unprocessable` where the key made a document of another body on this device.
  func insert(
    _ body: ValueMap, under key: Text, _ partition: PartitionName, _ collection: Text
  ) throws(NodeError) -> (id: ObjectID, receipt: WriteReceipt)
  /// All of it in one change, or nothing.
  func write(_ partition: PartitionName, _ requests: [DocumentRequest]) throws(NodeError) -> WriteReceipt
  /// Each request in a change of its own; a refused one does not stop the others. At most ``BulkLimit/requests``.
  func writeEach(
    _ partition: PartitionName, _ requests: [DocumentRequest]
  ) throws(NodeError) -> [Result<WriteReceipt, NodeError>]
  /// Refuses a result beyond the bounds of ``ReadLimits`` with `tooLarge`. What is written while a long pass goes on may
  /// be in the result or not, document by document.
  /// Documents that do not read on this device are named beside the others.
  func find(_ partition: PartitionName, _ collection: Text, _ query: FindRequest) throws(NodeError) -> FoundDocuments
  /// Every live document in key order, of one collection or of all, `visit` answering false to stop. Those that do not read
  /// on this device are left out; ``damaged()`` names them from then on.
  func export(
    _ partition: PartitionName, collection: Text?, visit: (Text, StoredDocument) -> Bool
  ) throws(NodeError)
  /// Documents that were met and do not read on this device, nor could its log give them again.
  func damaged() throws(NodeError) -> [DamagedStatus]
  func watch(
    _ partition: PartitionName, _ collection: Text, _ query: FindRequest
  ) throws(NodeError) -> any WatchSubscription

  /// Documents, living and deleted, with values that are not shown because others were written beside them (rule M11). Looks at so
  /// many documents as ``ReadLimits`` allow and says where to go on.
  func conflicts(_ partition: PartitionName, _ query: ConflictQuery) throws(NodeError) -> ConflictPage
  /// Decides one of them, by the id that a page gave it, in one change. Refused with `preconditionFailed` where the document is not
  /// as it was read there: nothing is replaced unread.
  func resolve(
    _ partition: PartitionName, conflict: String, _ choice: ConflictChoice
  ) throws(NodeError) -> WriteReceipt

  /// How safe a document is, living or deleted: who holds what it stands on. `asking`: peers in reach are asked first, for a
  /// moment.
  func receipts(
    _ partition: PartitionName, _ collection: Text, id: Value, asking: Bool
  ) throws(NodeError) -> ReceiptReport
  /// Of everything that counts in the partition.
  func receipts(_ partition: PartitionName, asking: Bool) throws(NodeError) -> ReceiptReport
  /// The same as long as somebody wants to know. `asking`: peers in reach are asked as long as one of them lacks something.
  func watchReceipts(_ place: ReceiptPlace, asking: Bool) throws(NodeError) -> any ReceiptSubscription

  /// Whether everything that is here is known to be elsewhere, so that this device may be wiped.
  func safeToWipe(_ rules: WipeRules, asking: Bool) throws(NodeError) -> WipeReport

  /// Classes of links: what passes on them, what they cost today, what waits.
  func links() throws(NodeError) -> [LinkReport]
  /// Every link is of this class from now on; `auto`: each by its rule again.
  func useLinks(_ name: Text) throws(NodeError)

  func doctor() throws(NodeError) -> [DoctorFinding]
  /// A consistent copy of the store while the node runs on. `progress` gets pages done and pages in all.
  func backup(to path: String, progress: (Int, Int) -> Void) throws(NodeError)
  /// Forwards at once what waits for a backend, also where an earlier failure made a pause.
  func sendForwardingNow() throws(NodeError)
  /// What the backend refuses now of what this node forwards, the first ``RefusedChain/limit``. Documents that it refuses are
  /// listed there.
  func refusedRuns() throws(NodeError) -> [RefusedRunStatus]
  /// Statements that it refuses, the first ``RefusedStatementStatus/limit``.
  func refusedStatements() throws(NodeError) -> [RefusedStatementStatus]
  /// Prometheus text format.
  func metrics() throws(NodeError) -> String
}

extension PartitionName {
  /// Whether documents can stand in it: subscribed to, a name that ends in * would be a prefix.
  package var takesDocuments: Bool { text.utf8.last != UInt8(ascii: "*") }

  /// As a person writes who means the documents of one partition.
  @discardableResult
  package static func ofDocuments(_ text: String) throws(NodeError) -> PartitionName {
    guard let name = try? PartitionName(Text(text)) else {
      throw NodeError(
        .unprocessable, "a partition's name has 1 to \(PartitionName.byteLimit) bytes and no control characters")
    }
    guard name.takesDocuments else {
      throw NodeError(
        .unprocessable, "\(text) is the beginning of names, and one partition is meant here: give its whole name")
    }
    return name
  }

  /// Somebody has put together KEY=VALUE and had no value, such as a user without an agency: whose that would be nobody knows (P03).
  package var lacksValue: Bool { text.utf8.last == UInt8(ascii: "=") }
}

package enum BulkLimit {
  package static let requests = 1_000
}

/// Why a node refused or failed. `message` is one sentence for a person, with what to do next where something can be done.
public struct NodeError: Error, Sendable, Equatable {
  public enum Code: String, Sendable, Equatable, CaseIterable {
    case badRequest = "bad-request"
    case notFound = "not-found"
    case notPermitted = "not-permitted"
    case preconditionFailed = "precondition-failed"
    case tooLarge = "too-large"
    /// Well formed, but not something this version or this limit allows.
    case unprocessable
    /// The document does not read on this device, nor can its log give it again. It can be written whole.
    case damaged = "damaged-document"
    /// The store is damaged, or the disk fails: the node is to be started again, or more than that.
    case storeFailed = "store-failed"
    /// The store is of a format that this version does not know.
    case otherVersion = "other-version"
    case diskFull = "disk-full"
    case readOnly = "read-only"
    case busy
    /// Nobody knows whether it was done.
    case unanswered
    case stopping
    case failed
  }

  public let code: Code
  public let message: String
  /// Where a write lacked the right: what it lacked.
  public let lackOfRight: LackOfRight?
  /// The limit that was passed, where one was.
  public let limit: Limit?
  /// Of several operations that are done together: which one was refused, from 1.
  public let operation: Int?

  public struct Limit: Sendable, Equatable {
    public let value: Int
    /// `bytes`, `documents`, `levels` and the like.
    public let unit: String

    package init(_ value: Int, _ unit: String) { (self.value, self.unit) = (value, unit) }
  }

  package init(
    _ code: Code, _ message: String, lackOfRight: LackOfRight? = nil, limit: Limit? = nil, operation: Int? = nil
  ) {
    (self.code, self.message, self.lackOfRight, self.limit) = (code, message, lackOfRight, limit)
    self.operation = operation
  }
}

/// What is to be done with one document.
package struct DocumentRequest: Sendable, Equatable {
  package enum Action: Sendable, Equatable {
    /// Replace or create. Fields that `body` leaves out are taken away, unless `keepAbsent`. Only what differs from the
    /// present version is recorded.
    case put(body: ValueMap, keepAbsent: Bool = false)
    /// As `put`, but refused where the document is alive.
    case insert(body: ValueMap)
    /// For whoever may ask twice: nothing where the document is alive already, refused where it was deleted.
    case insertOnce(body: ValueMap)
    /// RFC 7396. Refused where there is no such document, unless `upsert`, which makes it.
    case mergePatch(ValueMap, upsert: Bool = false)
    /// MongoDB update operators; those not built yet are refused by name. `upsert` applies them to an empty document
    /// where there is none.
    case update(ValueMap, upsert: Bool = false)
    case delete
  }

  package let collection: Text
  package let id: Value
  package let action: Action
  /// What the document must be now; nil writes in any case.
  package let condition: Condition?

  package init(collection: Text, id: Value, action: Action, condition: Condition?) {
    (self.collection, self.id, self.action, self.condition) = (collection, id, action, condition)
  }

  /// `ifMatch`: the ETag that the document must have now, without quotes.
  package init(collection: Text, id: Value, action: Action, ifMatch: String? = nil) {
    self.init(collection: collection, id: id, action: action, condition: ifMatch.map { .isOneOf([$0]) })
  }
}

extension DocumentRequest {
  /// RFC 9110 §13.1: what `If-Match` and `If-None-Match` ask. ETags are without quotes.
  package enum Condition: Sendable, Equatable {
    case exists
    case isAbsent
    case isOneOf([String])
    case isNoneOf([String])
    indirect case all([Condition])

    /// `etag`: of the document as it stands; nil where there is none.
    package func holds(etag: String?) -> Bool {
      switch self {
      case .exists: etag != nil
      case .isAbsent: etag == nil
      case .isOneOf(let wanted): etag.map(wanted.contains) ?? false
      case .isNoneOf(let unwanted): !(etag.map(unwanted.contains) ?? false)
      case .all(let conditions): conditions.allSatisfy { $0.holds(etag: etag) }
      }
    }
  }
}

package struct WriteReceipt: Sendable, Equatable {
  /// Nil where nothing differed, so that no change was made.
  package let dot: Dot?
  /// ETag of each document after the write, in the order of the requests; nil for a deleted one.
  package let etags: [String?]
  /// Whether each request made a document that was not there before.
  package let created: [Bool]
  /// How safe the write is when this returns.
  package let safety: String

  package init(dot: Dot?, etags: [String?], created: [Bool], safety: String = "local-durable") {
    (self.dot, self.etags, self.created, self.safety) = (dot, etags, created, safety)
  }
}

package struct StoredDocument: Sendable, Equatable {
  package let id: Value
  /// Without `_id`.
  package let body: ValueMap
  package let etag: String

  package init(id: Value, body: ValueMap, etag: String) { (self.id, self.body, self.etag) = (id, body, etag) }

  /// `_id` first among the keys in byte order, as documents are shown outside.
  package var withID: ValueMap {
    var map = body
    map["_id"] = id
    return map
  }
}

/// MongoDB-style filter, sort, limit, skip and projection. What is not understood is refused by name.
package struct FindRequest: Sendable, Equatable {
  package var filter: ValueMap
  /// Dotted field, ascending?; ties by canonical id, descending where the first field is.
  package var sort: [SortField]
  package var limit: Int?
  package var skip: Int
  package var projection: ValueMap?

  package struct SortField: Sendable, Equatable {
    package let path: Text
    package let ascending: Bool
    package init(path: Text, ascending: Bool) { (self.path, self.ascending) = (path, ascending) }
  }

  package init(
    filter: ValueMap = ValueMap(), sort: [SortField] = [], limit: Int? = nil, skip: Int = 0,
    projection: ValueMap? = nil
  ) {
    (self.filter, self.sort, self.limit, self.skip) = (filter, sort, limit, skip)
    self.projection = projection
  }
}

/// A live result. `next` blocks for at most `timeoutMilliseconds`, answering nil when nothing happened until then.
package protocol WatchSubscription: Sendable {
  func next(timeoutMilliseconds: Int) throws(NodeError) -> WatchEvent?
  func cancel()
}

/// `position` is the index in the result after the event (before it, for a delete). `cursor` names
/// the result that the event leads to, for resuming.
package enum WatchEvent: Sendable, Equatable {
  case snapshot([StoredDocument], cursor: String)
  case insert(StoredDocument, position: Int, cursor: String)
  case update(StoredDocument, position: Int, previousPosition: Int, cursor: String)
  case delete(id: Value, position: Int, cursor: String)
}

package struct InviteRequest: Sendable, Equatable {
  package let user: Text
  package let role: Text
  package let profile: ValueMap
  /// So long may somebody enter with it.
  package let validMilliseconds: Int64

  package static let validByDefault: Int64 = 24 * 3_600 * 1_000

  package init(
    user: Text, role: Text, profile: ValueMap, validMilliseconds: Int64 = InviteRequest.validByDefault
  ) {
    (self.user, self.role, self.profile) = (user, role, profile)
    self.validMilliseconds = validMilliseconds
  }
}

/// An open invitation, without its secret.
package struct InvitationStatus: Sendable, Equatable {
  package let serial: UInt64
  package let user: Text
  package let role: Text
  package let profile: ValueMap
  /// By this device's clock, in milliseconds since 1970.
  package let expires: Int64

  package init(serial: UInt64, user: Text, role: Text, profile: ValueMap, expires: Int64) {
    (self.serial, self.user, self.role) = (serial, user, role)
    (self.profile, self.expires) = (profile, expires)
  }
}

/// A new invitation. Whoever has its code first can enter with it.
package struct IssuedInvitation: Sendable, Equatable {
  package let code: String
  package let status: InvitationStatus
  /// What may be a mistake in it.
  package let notes: [String]
  package init(code: String, status: InvitationStatus, notes: [String] = []) {
    (self.code, self.status, self.notes) = (code, status, notes)
  }
}

package struct NodeStatus: Sendable, Equatable {
  package var version = ""
  package var fleet = ""
  package var fleetName = ""
  package var device = ""
  package var user = ""
  package var label = ""
  package var replica: String?
  package var directory = ""
  package var listen: [String] = []
  package var uptimeMilliseconds: Int64 = 0
  package var documents: Int64 = 0
  package var changes: Int64 = 0
  /// Bytes of the log: every change is kept, nothing is compacted yet.
  package var logBytes: Int64 = 0
  package var databaseBytes: Int64 = 0
  package var diskFreeBytes: Int64 = 0
  package var readOnly = false
  /// Changes kept but not counted, with their reasons.
  package var held: [String: Int64] = [:]
  /// Of these, changes of devices that were ended, by their labels, with a key behind one that several have; told to the device itself
  /// and to admins.
  package var heldOfEnded: [String: Int64] = [:]
  package var peersConnected = 0
  package var discovery = ""
  /// Nil where this node does not forward.
  package var forwarding: ForwardingStatus?
  package var links: [LinkReport] = []
  /// Changes that are not known to be elsewhere, as `safe-to-wipe` judges; nil where there are too many partitions to judge them
  /// in passing.
  package var lostIfWiped: UInt64?
  /// Paths in the data directory that would be lost with it and that ``lostIfWiped`` knows nothing of: stores from before a
  /// restore, files of records that could not be imported.
  package var setAside: [String] = []
  /// What ended this device; nothing while it is a member.
  package var endedBy: [RightStatus] = []
  /// As the inboxes were when they were last summed up; nil where none were.
  package var conflicts: ConflictCount?
  /// How long ago the engine was looked at for this; more than a moment where it is busy.
  package var ageMilliseconds: Int64 = 0
  package init() {}
}

/// In how many partitions something waits for a decision.
package struct ConflictCount: Sendable, Equatable {
  package var openPartitions: Int
  /// Those of which it is known.
  package var partitions: Int
  package init(openPartitions: Int, partitions: Int) {
    (self.openPartitions, self.partitions) = (openPartitions, partitions)
  }
}

package struct PeerStatus: Sendable, Equatable {
  package var device = ""
  package var label = ""
  package var user = ""
  package var address = ""
  /// Discovery finds it there now.
  package var isFound = false
  package var state = State.seen
  /// It was a member of the fleet and is none any more.
  package var isEnded = false
  /// Why it is in that state, or what else a person should know; often empty.
  package var detail = ""
  /// What this node's own link has to do with that; nil where nothing.
  package var link: LinkCause?
  /// Milliseconds by which its clock is ahead of this device's; nil where they are about the same.
  package var clockDifference: Int64?
  package var roundTripMilliseconds: Double?
  package var lastContactMilliseconds: Int64?
  /// Changes that this node knows the peer to lack, and the other way round; nil where nothing is known of that.
  package var behind: Int64? = 0
  package var ahead: Int64? = 0
  /// Bytes of messages on the present connection, before TLS seals them.
  package var sentBytes: Int64 = 0
  package var receivedBytes: Int64 = 0
  package init() {}

  package enum State: String, Sendable, CaseIterable {
    case connected, connecting
    /// It was connected.
    case silent
    /// Its address is known, and nobody has tried it yet.
    case seen
    case unreachable
    case otherFleet = "other fleet"
    case refused
  }

  package enum LinkCause: Sendable, Equatable {
    /// It is of the class none.
    case closed
    /// It lets something else pass than before, so that the session was ended to begin anew.
    case moved
    /// It carried a connection, which has ended.
    case ended
  }
}

package struct DeviceStatus: Sendable, Equatable {
  package var device = ""
  package var user = ""
  package var label = ""
  /// The first of ``roles``.
  package var role = ""
  /// By all of its memberships that stand, or of an ended device by those that it had: `admin` first, the others in byte order.
  package var roles: [String] = []
  package var profile = ValueMap()
  package var replicas: [String] = []
  package var isSelf = false
  /// What ended it; nothing while it is a member.
  package var endedBy: [RightStatus] = []
  package init() {}
}

package struct PartitionStatus: Sendable, Equatable {
  package var name = ""
  package var subscribed = false
  package var documents: Int64 = 0
  package var changes: Int64 = 0
  package var heldChanges: Int64 = 0
  /// Replica (hex), highest sequence accepted, tip (hex).
  package var vector: [(replica: String, sequence: UInt64, tip: String)] = []
  /// Names the documents (`Docs/PROTOCOL.md`, "State digest"), those of ``vector`` and of no other state; nil where
  /// ``digestState`` tells why.
  package var digest: String?
  /// The same of what is in the conflict inboxes of these documents, and of deleted ones.
  package var inboxDigest: String?
  package var digestState = DigestState.notAsked
  /// Whether something waits for a decision; nil where that is not known.
  package var hasConflicts: Bool? { inboxDigest.map { $0.contains { $0 != "0" } } }
  package init() {}

  package enum DigestState: Sendable, Equatable {
    case notAsked
    case computed
    /// With what to do.
    case notComputed(String)
    /// With what went wrong, in this partition alone.
    case failed(String)
  }

  package static func == (a: PartitionStatus, b: PartitionStatus) -> Bool {
    a.name == b.name && a.subscribed == b.subscribed && a.documents == b.documents && a.changes == b.changes
      && a.heldChanges == b.heldChanges && a.digest == b.digest && a.inboxDigest == b.inboxDigest
      && a.digestState == b.digestState && a.vector.elementsEqual(b.vector, by: ==)
  }
}

package struct DoctorFinding: Sendable, Equatable {
  package enum Level: String, Sendable, Equatable { case ok, warning, problem }
  package let level: Level
  /// Short and stable, such as `no-responder`.
  package let code: String
  package let message: String
  package let remedy: String
  package init(_ level: Level, _ code: String, _ message: String, remedy: String) {
    (self.level, self.code, self.message, self.remedy) = (level, code, message, remedy)
  }
}
