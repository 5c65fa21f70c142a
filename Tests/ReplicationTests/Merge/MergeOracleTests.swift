import Replication
import Testing

@testable import Simulation

/// The oracle's merge knows writes that were issued again by rules of its own.
@Suite("The oracle's merge of writes and their re-issues")
struct MergeOracleTests {
  @Test("it shows the documents and inboxes of every case with groups", arguments: ["merge-hand", "merge-random-1"])
  func everyCaseWithGroups(file: String) throws {
    var count = 0
    for vector in try MergeVectors.cases(file) where !vector.groups.isEmpty {
      count += 1
      let dots = Set(vector.counted.map(\.dot))
      let groups = vector.groups.map { group in
        let again = group.dropFirst().filter(dots.contains)
        return NaiveGroup(
          first: group[0], again: again, effective: dots.contains(group[0]) ? group[0] : again.first ?? group[0])
      }
      let silent = Set(vector.groups.joined()).subtracting(groups.map(\.effective))
      let changes = vector.counted.filter { !silent.contains($0.dot) }.map { change in
        NaiveChange(
          dot: change.dot, timestamp: change.context.timestamp.rawValue,
          context: NaivePosition.entries(of: change.context.context), writes: change.writes)
      }
      let documents = NaiveMerge.documents(changes, groups: groups)
      let alive = documents.filter { $0.body != nil }
      #expect(alive.map(\.generation) == vector.expected.documents.map(\.generation), "\(vector.name)")
      for (document, expected) in zip(alive, vector.expected.documents) {
        #expect(document.key.id == expected.key.id && document.shows(expected.body), "\(vector.name)")
      }
      let inbox = documents.flatMap(\.inbox)
      #expect(inbox.map(\.dot) == vector.expected.inbox.map(\.dot), "\(vector.name)")
      #expect(inbox.map(\.value) == vector.expected.inbox.map(\.value), "\(vector.name)")
    }
    #expect(count > 20)
  }
}
