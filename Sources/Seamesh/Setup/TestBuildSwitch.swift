import Identity
import Replication

/// Has a node run as another build than this one is, for tests of fleets of several builds
/// ([decision 28](Docs/Decisions/0028-nodes-of-other-builds-in-tests.md)).
///
/// Nobody sets it by accident: it names the one fleet that it is for, and with anything else the node does not start.
package struct TestBuildSwitch: Sendable {
  /// In no help: nobody but a test has a use for it.
  package static let variable = "SEAMESH_TEST_BUILD"

  /// Which build it is to be; nil: this one, in which something is to go wrong.
  let build: TestBuild?
  /// A thread that does not come back counts as hung after this.
  let hangMilliseconds: UInt64?
  /// The engine's thread stops for ever.
  let hangs: Bool
  /// The thread of connections does.
  let hangsConnections: Bool
  private let fleet: FleetID

  private static let shortHangMilliseconds: UInt64 = 2_000

  /// Nil where it is not set. `BUILD:FLEET`, the fleet's id in full; `hangs`, `hangs-connections` and `watched` stand for this
  /// build with an impatient watchdog, in the first two of which the engine hangs, or the thread of connections.
  package init?(_ environment: [String: String]) throws(NodeError) {
    guard let text = environment[TestBuildSwitch.variable] else { return nil }
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, let fleet = FleetID(text: parts[1]) else { throw TestBuildSwitch.senseless }
    self.fleet = fleet
    (hangs, hangsConnections) = (parts[0] == "hangs", parts[0] == "hangs-connections")
    guard !hangs, !hangsConnections, parts[0] != "watched" else {
      (build, hangMilliseconds) = (nil, TestBuildSwitch.shortHangMilliseconds)
      return
    }
    guard let build = TestBuild(rawValue: String(parts[0])) else { throw TestBuildSwitch.senseless }
    (self.build, hangMilliseconds) = (build, nil)
  }

  func formats(in fleet: FleetID) throws(NodeError) -> KnownFormats {
    guard fleet == self.fleet else { throw TestBuildSwitch.refusal("it names another fleet than this node's") }
    return build?.formats ?? .all
  }

  /// The same rules, less patient.
  func hastened(_ rules: WatchRules) -> WatchRules {
    guard let hangMilliseconds else { return rules }
    var rules = rules
    (rules.lookMilliseconds, rules.lookLimit) = (hangMilliseconds / 10, 10)
    return rules
  }

  private static var senseless: NodeError { refusal("it says nothing that a test would") }

  private static func refusal(_ reason: String) -> NodeError {
    NodeError(.unprocessable, "\(variable) is for tests of the node alone, and \(reason): unset it")
  }
}
