import Engine
import Replication
import Wire

/// A change of rights that somebody asks for. Names are as people write them: WHO is `device:LABEL-or-key`, `user:ID`,
/// `role:ROLE` or `everyone`, a device its label or the beginning of its key.
package struct RightsChange: Sendable, Equatable {
  package enum Action: Sendable, Equatable {
    case grant(who: String, level: String, pattern: Text)
    case revoke(device: String, isCompromised: Bool, at: String?)
    case retire(device: String)
    /// Of a device all that ends of it hold back, or what the one statement does whose id begins so.
    case raise(String)
    case promote(device: String)
  }

  package let action: Action
  /// Says what would come of it, and signs nothing.
  package let isDryRun: Bool
  /// Whoever asks knows that it takes something away, ends this device, or leaves nobody who decides.
  package let isConfirmed: Bool
  /// For whoever speaks HTTP, uses the verbs, or has the library.
  package static let howToConfirm =
    #"confirm it with "yes": true (--yes, .signConfirmed); "dryRun": true (--dry-run, .preview) shows what it would do"#

  package init(_ action: Action, isDryRun: Bool = false, isConfirmed: Bool = false) {
    (self.action, self.isDryRun, self.isConfirmed) = (action, isDryRun, isConfirmed)
  }
}

/// What a change of rights did, or would do.
package struct RightsOutcome: Sendable, Equatable {
  package struct Fall: Sendable, Equatable {
    package let partition: String
    /// Changes that count no longer, and those that count again.
    package let lostChanges: Int
    package let gainedChanges: Int
    /// Documents that these write.
    package let documents: Int
    package init(partition: String, lostChanges: Int, gainedChanges: Int, documents: Int) {
      (self.partition, self.lostChanges, self.gainedChanges) = (partition, lostChanges, gainedChanges)
      self.documents = documents
    }
  }

  package var isSigned = false
  /// It takes something away.
  package var isNarrowing = false
  /// Ids of the statements; none where it is so already.
  package var statements: [String] = []
  /// In words.
  package var says: [String] = []
  /// `this device` or `the fleet's root`.
  package var signer = ""
  package var falls: [Fall] = []
  /// Of a dry run: who of those that are known could do what from then on, in partitions that are here.
  package var effects: [String] = []
  /// Partitions that were met and are not carried here.
  package var notCarried: [String] = []
  /// What has to be confirmed.
  package var warnings: [String] = []
  package var notes: [String] = []
  package init() {}

  /// Nil where it takes nothing away from anybody: that is signed as it is asked for.
  var reasonToConfirm: String? {
    guard warnings.isEmpty else { return warnings.joined(separator: "; ") }
    return isNarrowing ? "this takes something away" : nil
  }
}

/// A statement of rights, and whether it holds.
package struct RightStatus: Sendable, Equatable {
  package var id = ""
  /// `grant`, `rule`, `room`, `invitation`, `end`.
  package var kind = ""
  package var words = ""
  /// What it gives, or gave.
  package var level = ""
  package var isInForce = false
  package var issuer = ""
  /// Milliseconds since 1970.
  package var since: Int64?
  /// `arrival`: the time is when it came here, by this node's clock. `issuer`: what the issuer's clock said.
  package var sinceBy = ""
  /// Of the end of a device: `retire`, `revoke` or `compromised`; empty where it does not say which.
  package var manner = ""
  /// What the issuer's clock said when it was signed, in milliseconds since 1970: the same on every node and for good, while a store
  /// that is fetched or restored has statements arrive once more. Nil where the issuer did not say.
  package var issuedAt: Int64?
  package var endedBy: [RightStatus] = []
  package init() {}
}

extension RightStatus {
  /// Of the end of a device: as what it was ended, by whom and since when; with ~ by the issuer's clock.
  var endSentence: String {
    let how =
      switch RightsRequest.EndManner(rawValue: manner) {
      case .retire: "retired"
      case .revoke: "revoked"
      case .compromised: "revoked as compromised"
      case nil: "ended"
      }
    let time = since.flatMap(CalendarTime.text).map { String(decoding: $0.prefix(19), as: UTF8.self) + "Z" }
    return "\(how) by \(issuer)" + (time.map { ", \(sinceBy == "issuer" ? "~" : "")\($0)" } ?? "")
  }
}

/// What one device may do in a partition, and why.
package struct PermissionStatus: Sendable, Equatable {
  package var device = ""
  package var label = ""
  package var user = ""
  package var role = ""
  package var isSelf = false
  package var level = ""
  /// Every statement that gives something there, or gave it once.
  package var rights: [RightStatus] = []
  /// Ends of the membership.
  package var endedBy: [RightStatus] = []
  package init() {}
}

package struct PermissionReport: Sendable, Equatable {
  /// With a partition: one for each membership that is asked for.
  package var members: [PermissionStatus] = []
  /// Without: every grant to whom is asked for.
  package var rights: [RightStatus] = []
  package init() {}
}
