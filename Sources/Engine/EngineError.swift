import Replication
import Wire

/// Why the engine refused or failed. `description` is one sentence for a person.
package enum EngineError: Error, Hashable, Sendable {
  case notAMember
  /// With what the device has there instead, as a sentence goes on.
  case notPermitted(PartitionName, has: AccessLevel, because: String)
  case changeTooLarge(byteCount: Int, limit: Int)
  case tooManyOperations(limit: Int)
  case malformedChange(String)
  /// An own run that the core does not take: a mistake in this program, which must not reach the disk.
  case ownRunNotTaken
  case payloadNotThere
  case payloadSpoiled
  case payloadsTooLarge(byteCount: Int, limit: Int)
  case noFleet
  /// A change that counts gave the document the highest generation that there is: it can neither end nor begin again.
  case undeletable(UndeletableDocument)
  /// Others write under this device's replica id, and the present one was drawn just now.
  case renewedLately(PartitionName, seconds: UInt64)
  /// The right to write there is that of another membership than of what was written last.
  case otherMembershipLately(PartitionName, seconds: UInt64)
  /// A new replica id could not be declared.
  case tooManyStatements
  /// This device has begun as much as it may.
  case tooManyPartitions(PartitionName)
  /// Of a change that was made from a version read elsewhere: what that stands on is not here, or does not count here.
  case versionNotHere
  /// The same, where a run of the log is damaged in which that stands.
  case versionDamaged
  /// The same, where it would replace what its author had not read.
  case changedSinceRead
}

/// Of what a peer sent.
extension EngineError: RuleBreach {
  package var rule: String {
    guard case .payloadsTooLarge(_, let limit) = self else { return description }
    return "runs of one message with more than \(limit) bytes of payloads apart from them"
  }
}

extension EngineError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .notAMember: "this device is not a member of its fleet: join again"
    case .notPermitted(let name, _, let reason): "this device may not write to \(name.text.string): \(reason)"
    case .changeTooLarge(let count, let limit): "one change holds at most \(limit) bytes, this has \(count)"
    case .tooManyOperations(let limit):
      "one change holds at most \(limit) operations, about one for each value: write it in several steps, the first as a whole and the rest as patches"
    case .malformedChange(let reason): "the change cannot be written: \(reason)"
    case .ownRunNotTaken: "an own run was not taken into the log"
    case .payloadNotThere: "a run whose payload did not come before it"
    case .payloadSpoiled: "pieces that do not come to the payload that they name"
    case .payloadsTooLarge(let count, let limit):
      "runs of one message with \(count) bytes of payloads apart from them; the limit is \(limit)"
    case .renewedLately(let name, let seconds):
      "somebody else writes to \(name.text.string) with this device's key or a copy of its data; this node can write there again in \(seconds) s"
    case .otherMembershipLately(let name, let seconds):
      "this device may write to \(name.text.string) by another of its memberships than it wrote by last; it can do so in \(seconds) s"
    case .tooManyStatements:
      "this device has made as many statements as its fleet takes of one, and needs a new replica id: join again in a new directory"
    case .undeletable(let document):
      "\(document.collection.string) \(document.id) has the last generation that a document may have: it can be edited, but neither deleted nor created anew"
    case .tooManyPartitions(let name):
      "\(name.text.string) would be one partition too many: a device that is no admin begins no more once it writes in \(DeviceTakeLimits.standard.partitions / 2) of them, or under so many replica ids that these are \(DeviceTakeLimits.standard.chains / 2) chains"
    case .versionNotHere: "the version that was read stands on changes that do not count here"
    case .versionDamaged:
      "what the version that was read stands on is damaged in this device's log: it waits until that has come anew from another device"
    case .changedSinceRead: "the document has changed since it was read: read it again"
    case .noFleet:
      "the store holds nothing of this fleet: put a backup back with seamesh restore, or join in a new directory"
    }
  }
}

extension EngineError {
  /// Of a change of several documents, which is too large by all of them.
  package var descriptionOfSeveral: String {
    switch self {
    case .changeTooLarge: "\(description): send fewer operations at once"
    case .tooManyOperations(let limit):
      "one change writes at most \(limit) values, counted over all its documents: send fewer operations at once"
    default: description
    }
  }
}

/// A document that no write can end any more.
package struct UndeletableDocument: Hashable, Sendable {
  package let collection: Text
  /// As people read it.
  package let id: String

  package init(collection: Text, _ id: Value) {
    (self.collection, self.id) = (collection, DamagedDocument.text(of: id))
  }
}

/// An error of the store: what is in it does not fit together.
package struct DamagedLog: StoreFailure, CustomStringConvertible {
  package let reason: String
  package init(_ reason: String) { self.reason = reason }
  package var isFatal: Bool { true }
  package var isOfOneRow: Bool { true }
  package var description: String { "the store is damaged: \(reason)" }

  /// Of one row that does not read, also where its own sum does not tell that.
  package static func isOfOneRow(_ error: any Error) -> Bool {
    (error as? any StoreFailure)?.isOfOneRow ?? (error is RunError || error is CBORError)
  }
}

extension DamagedLog {
  /// What came up with a stored run, as a failure that names it.
  static func failure(_ error: any Error, of run: DamagedRun?) -> any StoreFailure {
    if let failure = error as? any StoreFailure { return failure }
    guard let run else { return DamagedLog("\(error)") }
    return UndecodedRun(run: run, reason: "\(error)")
  }
}

/// A stored run that does not decode, though no sum tells that it is not as it was written: rows of early stores have none.
struct UndecodedRun: StoreFailure, CustomStringConvertible {
  let run: DamagedRun
  let reason: String
  var isFatal: Bool { true }
  var isOfOneRow: Bool { true }
  var runAtFault: DamagedRun? { run }
  var description: String { "\(run): \(reason)" }
}

/// A payload that travelled apart from its run is not here as it was written.
struct DamagedPayload: StoreFailure, CustomStringConvertible {
  let run: DamagedRun
  var isFatal: Bool { true }
  var isOfOneRow: Bool { true }
  var runAtFault: DamagedRun? { run }
  var isOfPayload: Bool { true }
  var description: String { "the payload of \(run)" }
}

/// A document of which the stored row does not read, nor could the log give it again. Everything else goes on.
package struct DamagedDocument: Error, Hashable, CustomStringConvertible {
  package let key: DocumentKey
  package let reason: String

  package init(_ key: DocumentKey, _ reason: String) { (self.key, self.reason) = (key, reason) }

  package var description: String { DamagedDocument.sentence(of: Value(canonicalID: key.id) ?? .bytes(key.id)) }

  package static func sentence(of id: Value) -> String {
    "document \(text(of: id)) is damaged on this device, and its log cannot give it again: write it whole, or read it on another device"
  }

  /// An id as people read it.
  package static func text(of id: Value) -> String {
    switch id {
    case .string(let text): text.string
    case .int(let number): "\(number)"
    default: ExtendedJSON.text(id)
    }
  }
}
