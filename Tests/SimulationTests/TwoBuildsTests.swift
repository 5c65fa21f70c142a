import Replication
import Testing

@testable import Simulation

/// A fleet in which one node is still of an earlier build, and all that the later one brought is in use.
@Suite("Two builds in one fleet") struct TwoBuildsTests {
  private func run(_ seed: UInt64) -> SimulationReport {
    var options = SimulationOptions()
    (options.nodes, options.troubledMilliseconds) = (3...4, 8_000)
    options.faults = [.rightChanged, .cut, .split, .crash, .crashInCommit, .largePayload]
    options.builds = BuildMix(earlier: TestBuild.earlier.formats, later: TestBuild.later.formats)
    return SimulationRun(seed: seed, options).run()
  }

  @Test(
    "no session ends in a protocol error, and after its upgrade the earlier node holds and shows what all others do")
  func agree() {
    var occurrences: [Occurrence: Int] = [:]
    for seed in UInt64(1)...30 {
      let report = run(seed)
      #expect(report.violations.isEmpty, "seed \(seed): \(report.violations)")
      #expect(report.judgements > 0)
      occurrences.merge(report.occurrences, uniquingKeysWith: +)
    }
    let wanted: [Occurrence] = [
      .upgraded, .heldByEarlier, .movedByUpgrade, .unreadKind, .unreadShape, .unreadCodec, .unreadCritical,
      .unreadInformative, .saidOptional, .saidFeature,
    ]
    for wanted in wanted {
      #expect(occurrences[wanted, default: 0] > 0, "\(wanted) never happened")
    }
  }
}
