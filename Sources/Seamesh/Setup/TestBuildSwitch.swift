import Identity
import Replication

/// Has a node run as another build than this one is, for tests of fleets of several builds
/// ([decision 28](Docs/Decisions/0028-nodes-of-other-builds-in-tests.md)).
///
/// Nobody sets it by accident: it names the one fleet that it is for, and with anything else the node does not start.
package struct TestBuildSwitch: Sendable {
  /// In no help: nobody but a test has a use for it.
  package static let variable = "SEAMESH_TEST_BUILD"

  let build: TestBuild
  private let fleet: FleetID

  /// Nil where it is not set. `BUILD:FLEET`, the fleet's id in full.
  package init?(_ environment: [String: String]) throws(NodeError) {
    guard let text = environment[TestBuildSwitch.variable] else { return nil }
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, let build = TestBuild(rawValue: String(parts[0])), let fleet = FleetID(text: parts[1])
    else { throw TestBuildSwitch.refusal("it says nothing that a test would") }
    (self.build, self.fleet) = (build, fleet)
  }

  func formats(in fleet: FleetID) throws(NodeError) -> KnownFormats {
    guard fleet == self.fleet else { throw TestBuildSwitch.refusal("it names another fleet than this node's") }
    return build.formats
  }

  private static func refusal(_ reason: String) -> NodeError {
    NodeError(.unprocessable, "\(variable) is for tests of the node alone, and \(reason): unset it")
  }
}
