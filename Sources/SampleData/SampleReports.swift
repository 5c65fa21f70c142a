import Replication

/// One document with the agency whose partition it belongs to.
package struct SampleDocument: Sendable, Equatable {
  package let agency: Text
  package let id: Value
  /// Without `_id`.
  package let body: ValueMap

  /// As documents are shown outside and imported.
  package var withID: ValueMap {
    var map = body
    map["_id"] = id
    return map
  }
}

/// Boarding reports as marine patrols write them, without end: the same for the same seed, on any machine.
///
/// Shape, shares and oddities (drafts without a flag, missing positions, names that two vessels share) are those seen
/// in real collections of this kind; all words are invented. Ids and times ascend.
package struct SampleReports: Sequence, Sendable {
  package let seed: UInt64

  package init(seed: UInt64) { self.seed = seed }

  package func makeIterator() -> Iterator { Iterator(patrols: SamplePatrols(seed: seed)) }

  package struct Iterator: IteratorProtocol, Sendable {
    fileprivate var patrols: SamplePatrols

    package mutating func next() -> SampleDocument? { patrols.next().report }
  }
}

/// The entries by which officers go on and off duty around the reports of ``SampleReports`` with the same seed.
package struct SampleDuty: Sequence, Sendable {
  package let seed: UInt64

  package init(seed: UInt64) { self.seed = seed }

  package func makeIterator() -> Iterator { Iterator(patrols: SamplePatrols(seed: seed)) }

  package struct Iterator: IteratorProtocol, Sendable {
    fileprivate var patrols: SamplePatrols
    private var waiting: [SampleDocument] = []

    fileprivate init(patrols: SamplePatrols) { self.patrols = patrols }

    package mutating func next() -> SampleDocument? {
      while waiting.isEmpty {
        if let shift = patrols.next().newShift { waiting = shift.reversed() }
      }
      return waiting.popLast()
    }
  }
}
