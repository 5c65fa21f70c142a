import Identity
import Replication
import TestSupport
import Testing

@testable import Engine
@testable import Seamesh

/// Nodes that run as another build, for tests alone.
@Suite("Nodes as another build", .serialized)
struct TestBuildSwitchTests {
  private func build(_ text: String?) throws -> TestBuildSwitch? {
    try TestBuildSwitch(text.map { [TestBuildSwitch.variable: $0] } ?? [:])
  }

  @Test("without the variable nothing is switched, and with what no test would say the node does not start")
  func malformed() throws {
    #expect(try build(nil) == nil)
    let fleet = try #require(FleetID(text: String(repeating: "ab", count: 32))).text
    for text in [
      "", "earlier", "earlier:", ":\(fleet)", "earlier:\(fleet.dropLast())", "sooner:\(fleet)", "earlier:\(fleet):",
      "earlier:\(fleet) ", "1",
    ] {
      let refused = #expect(throws: NodeError.self, "\(text)") { try build(text) }
      #expect(refused?.message.contains("SEAMESH_TEST_BUILD is for tests of the node alone") == true)
    }
  }

  @Test("it holds for nodes of the fleet that it names, and those of any other do not start")
  func otherFleet() throws {
    let fleet = try TestFleet(1)
    let own = fleet.nodes[0].files.fleet
    fleet.nodes[0].stop()
    let other = try #require(FleetID(text: String(repeating: "ab", count: 32)))
    for (named, starts) in [(other, false), (own, true)] {
      var configuration = fleet.configuration([]) { _ in }
      configuration.testBuild = try build("earlier:\(named.text)")
      do {
        let node = try Node.start(directory: fleet.path(of: 0), configuration: configuration)
        #expect(starts)
        #expect(try node.rules().isEmpty, "an earlier build knows rules")
        node.stop()
      } catch {
        #expect(!starts && error.message.contains("names another fleet"), "\(error.message)")
      }
    }
    try fleet.restart(0)
    #expect(try !fleet.nodes[0].rules().isEmpty)
  }

  @Test("an earlier build lacks of what this one knows, and a later one has and uses what this one does not know")
  func builds() {
    let (earlier, later) = (TestBuild.earlier.formats, TestBuild.later.formats)
    #expect(earlier.statementKinds.count + 1 == KnownFormats.all.statementKinds.count)
    #expect(earlier.grantSubjects.count + 1 == KnownFormats.all.grantSubjects.count)
    #expect(later.written.contains { $0.codec != .plain } && later.written.contains { !$0.extensions.isEmpty })
    for formats in [earlier, KnownFormats.all] {
      for form in later.written {
        #expect(form.codec == .plain || !formats.codecs.contains(form.codec))
        #expect(form.extensions.allSatisfy { !formats.criticalExtensions.contains($0.type) })
      }
    }
    let numbers = later.news.map(LaterNews.isForAnybody)
    #expect(numbers.contains(true) && numbers.contains(false) && earlier.news.isEmpty && KnownFormats.all.news.isEmpty)
  }
}
