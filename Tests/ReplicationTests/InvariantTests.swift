import Synchronization
import Testing

@testable import Replication
@testable import Simulation

@Suite("What must hold within") struct InvariantTests {
  private func heard(_ look: () -> Void) -> [String] {
    let noted = Mutex<[String]>([])
    let witness = InvariantWitness { what in noted.withLock { $0.append(what) } }
    Invariant.$witness.withValue(witness) { look() }
    return noted.withLock { $0 }
  }

  @Test("who listens hears what does not hold, and nothing else")
  func witness() {
    let heard = heard {
      Invariant.check(1 < 2, "this holds")
      Invariant.check(2 < 1, "this does not")
    }
    #expect(heard == ["this does not"])
  }

  @Test("where nobody listens the process stops")
  func stop() async {
    await #expect(processExitsWith: .failure) { Invariant.check(2 < 1, "this does not hold") }
  }

  @Test("a sum, a digest and a count that are made up of changes are held against those made anew")
  func madeAnew() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    try bench.nodes[0].write(1)
    bench.pass(100)
    let told = heard {
      bench.nodes[0].mesh.sessions[id]?.live?.comparison.sums?.add(bench.partition, 1)
      bench.nodes[0].ask(id)
      bench.nodes[0].mesh.ledger.takes.add(
        DeviceTake(chains: 1), of: bench.nodes[1].key.publicKey, bench.nodes[0].mesh.authority)
      bench.nodes[0].deliver(.tick)
    }
    #expect(Set(told) == ["sums are not those of what is in common", "what devices take is miscounted"])
  }

  @Test(
    "changes that statements make held are counted as their device's, also where they were read from storage for it")
  func heldByStatement() throws {
    let bench = try MeshBench([0, 1])
    let runs = try (1...3).map { try bench.nodes[0].write($0) }
    _ = bench.connected(0, 1)
    let (author, reader) = (bench.nodes[0], bench.nodes[1])
    try #require(reader.holds(author) == 3 && reader.state?.nodeCount == 0, "all of it is in the trunk")
    let membership = try #require(reader.membership(of: author))
    let position = ChainPosition(sequence: 1, tip: try #require(runs[0].hashAtLast).tip)
    let end = Statement.End(
      reason: .retire, target: .membership(membership),
      listing: Statement.Listing(
        ends: [.init(partition: bench.name.text, chains: [.init(replica: author.replica, position: position)])],
        tips: reader.tips(of: author)))
    reader.deliver(.statementsStored([try #require(bench.state(.end(end)))]))
    #expect(reader.holds(author) == 1)
    #expect(reader.mesh.takes[author.key.publicKey]?.heldChanges == 2)
  }
}

extension BenchNode {
  fileprivate func membership(of other: BenchNode) -> Digest? { mesh.authority.member(of: other.key.publicKey)?.id }

  fileprivate func tips(of other: BenchNode) -> [Statement.ScopeTips] {
    let own = mesh.authority.fleetStatements.filter { $0.issuer == other.key.publicKey }
    return [
      .init(
        scope: "", tips: own.suffix(1).map { .init(issuer: $0.issuer, sequence: $0.sequence, id: $0.id) })
    ]
  }
}

extension Invariant {
  /// What a test has planted need not fit together.
  static func unheard<Answer>(_ body: () throws -> Answer) rethrows -> Answer {
    try $witness.withValue(InvariantWitness { _ in }, operation: body)
  }
}
