import Replication

/// Whether this device's store may be destroyed, why, and what would be lost.
package struct WipeReport: Sendable, Equatable {
  package var isSafe = false
  /// As it was judged.
  package var rules = WipeRules()
  /// Changes that are here, partitions that they are of, and how many changes would be lost.
  package var changes: UInt64 = 0
  package var partitions = 0
  package var lostChanges: UInt64 = 0
  package var lostPartitions = 0
  /// Of these changes, those that nobody else is known to hold. The others are elsewhere, on fewer devices than are asked for.
  package var nowhereChanges: UInt64 = 0
  /// The first of them.
  package var losses: [Loss] = []
  /// Who holds what is here, and counts.
  package var evidence: [Witness] = []
  /// Whose word does not count.
  package var uncounted: [Witness] = []
  /// Files of records that could not be stored when they were imported.
  package var asideFiles: [AsideFile] = []
  /// What stands in the way beside these, and what else goes with the store, as sentences.
  package var obstacles: [String] = []
  package var notes: [String] = []

  package init() {}

  package struct Loss: Sendable, Equatable {
    package var partition = ""
    package var changes: UInt64 = 0
    /// Of these, on branches that were not chosen: no word speaks of them.
    package var apart: UInt64 = 0
    /// A few documents that these changes wrote; none where this device may not read them.
    package var documents: [Document] = []
    /// Labels of devices in reach that could take them, and are not known to have all of them.
    package var reachable: [String] = []
    /// Labels of devices that have them already, fewer than are asked for.
    package var holders: [String] = []
    /// Why waiting may bring nothing, as sentences.
    package var hindrances: [String] = []
    package init() {}
  }

  package struct Document: Sendable, Equatable {
    package let collection: String
    package let id: Value
    package init(collection: String, id: Value) { (self.collection, self.id) = (collection, id) }
  }

  package struct Witness: Sendable, Equatable {
    package var device = ""
    package var label = ""
    package var role = ""
    /// It says what the backend has, not what it has itself.
    package var isOfBackend = false
    /// This device, by what its forwarder has read.
    package var isSelf = false
    /// Partitions of which it speaks, and the age of its oldest word; nil where that cannot be told.
    package var partitions = 0
    package var ageMilliseconds: Int64?
    /// Why it does not count: `ended`, `forked`, `unentitled`, `barred`, `old`, `clock` or `unheard`; empty where it does.
    package var flaw = ""
    package init() {}
  }

  package struct AsideFile: Sendable, Equatable {
    package let path: String
    package let records: Int
    package init(path: String, records: Int) { (self.path, self.records) = (path, records) }
  }
}

package enum WipeLimits {
  /// Partitions that status and doctor judge in passing.
  static let statusPartitions = 256
  /// Of a file of records that were put aside, so much is looked at.
  static let asideBytes = 64 * 1024 * 1024
  /// A record put aside begins its file's name with this.
  package static let asidePrefix = "import-aside-"
}
