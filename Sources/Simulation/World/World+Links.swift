import Engine
import Replication

/// What the links of one world let pass, which moves as long as there is trouble. Drawn apart, so that worlds without it are
/// what they were.
struct LinkLife {
  static let percent = 15
  static let interval: ClosedRange<UInt64> = 300...4_000

  var random: SimulationRandom

  init(seed: UInt64) { random = SimulationRandom(seed: SimulationRandom.mix(seed &+ 0x6c69_6e6b)) }
}

/// What a node's links let pass.
struct LinkState {
  /// Names, or beginnings of names with `*` behind, in their order; nil: everything.
  var carries: [Text]?
  var isThin = false
  /// No session may be.
  var isClosed = false

  func lets(_ name: PartitionName) -> Bool {
    carries?.contains { pattern in
      pattern.string.hasSuffix("*")
        ? name.text.string.hasPrefix(String(pattern.string.dropLast())) : pattern.string == name.text.string
    } ?? true
  }

  func passage(_ fleet: Fleet) -> Passage? {
    guard !isClosed else { return nil }
    return Passage(
      carries?.compactMap { pattern in
        if pattern.string.hasSuffix("*") { return .prefix(Text(String(pattern.string.dropLast()))) }
        return (try? PartitionName(pattern)).map { .partition($0, fleet.partition($0)) }
      }, isThin: isThin)
  }
}

extension World {
  /// The links of some node let something else pass from now on.
  func moveLink() {
    guard isTroubled, var life = linkLife else { return }
    let next = clock + life.random.between(LinkLife.interval)
    if let slot = life.random.pick(nodes.filter({ $0.process != nil }).map(\.slot)) {
      var state = LinkState()
      switch life.random.below(6) {
      case 0: break
      case 1: state.carries = []
      case 2: state.isClosed = true
      default:
        var names = plan.partitions.map(\.text).filter { _ in life.random.chance(60) }
        for index in names.indices.dropFirst() { names.swapAt(index, life.random.below(index + 1)) }
        if life.random.chance(30) { names.append("*") }
        state.carries = names
      }
      state.isThin = life.random.chance(50) || state.carries != nil
      let previous = nodes[slot].link
      nodes[slot].link = state
      if state.carries != nil || state.isClosed { count(.linkNarrowed) }
      note("\(slot) links carry \(state.isClosed ? "nothing" : "\(state.carries.map { $0.map(\.string) } ?? ["all"])")")
      if state != previous { nodes[slot].process?.put(.passagesMoved) }
    }
    linkLife = life
    queue.put(.linkMoved, at: next)
  }

  func freeLinks() {
    for node in nodes where node.link != LinkState() {
      node.link = LinkState()
      node.process?.put(.passagesMoved)
    }
  }
}

extension LinkState: Equatable {}
