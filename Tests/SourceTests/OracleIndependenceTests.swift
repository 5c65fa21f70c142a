import Foundation
import Testing

/// The simulator's onlooker must not take the word of what it judges.
@Suite("The oracle judges with rules of its own")
struct OracleIndependenceTests {
  /// Names by which the code under test merges, accepts and reads rights. Types that carry data alone may be named.
  private static let judges =
    [
      "DocumentState", "AcceptedWrite", "Dominators", "Entry", "Marker", "Shown", "WriteContext", "WriteStamp",
      "Conflict", "OperationGroup", "LocalWrite", "Differ", "Malformation", "PathOrder", "Positions", "DocumentKey",
      "canonicalBytes", "appendCanonical\\w*", "element\\.key",
      "PartitionLog", "Chain\\w*", "RunSummary", "ChangeFacts", "AcceptanceChange", "HeldChange", "HoldReason",
      "Reissue\\w*", "Kin", "KinTable", "Sight", "hasEffect", "ceilings", "covers", "join", "isCovered", "sees",
      "compared",
      "Authority", "StatementSet", "Signed", "MemberTable", "GrantTable", "FloorTable", "NamePattern", "keyValue",
      "Refusal", "DocumentRule", "ReplicaCertificate", "derived", "ReferenceStore", "ReferenceChange",
      "AdmittedStatements", "StatementIndex", "StatedMembership", "ListedWord", "ListedWords", "ListedPart",
      "StatementLines", "CoveredStatements", "MembershipEnds", "Member", "RightsTable", "EntitledDevices", "RoomRights",
      "RoomSpeakers", "RoomStatements", "OwnDocument\\w*",
    ].joined(separator: "|")

  private static let naming = SourceRule { text in
    guard let expression = try? NSRegularExpression(pattern: "\\b(\(judges))\\b") else { return [0] }
    let lines = SwiftCode(text).lines
    return lines.indices.filter { index in
      let line = lines[index]
      return expression.firstMatch(in: line, range: NSRange(line.startIndex..., in: line)) != nil
    }.map { $0 + 1 }
  }

  @Test("no file of the oracle names the code under test, or imports more than its data")
  func independence() throws {
    let files = try SourceTree.swiftFiles("Sources/Simulation/Oracle")
    #expect(files.count > 10)
    #expect(Self.naming.places(in: files) == [])
    #expect(SourceRule.imports(beyond: ["Replication"]).places(in: files) == [])
  }

  @Test(
    "a judge's name is found, its mention in a comment or string is not",
    arguments: [
      ("let a = DocumentState.merged(of: writes)", [1]), ("if vector.covers(dot) { }", [1]),
      ("a.join(b)\nvalue.canonicalBytes", [1, 2]), ("let c: ChainPosition", [1]), ("// like DocumentState", []),
      ("\"the PartitionLog\"", []), ("authority.level(of: a)", []), ("let a: VersionVector", []),
      ("NaivePattern(name).includes(other)", []),
    ] as [(String, [Int])])
  func naming(_ source: String, _ lines: [Int]) { #expect(Self.naming.lines(source) == lines) }
}
