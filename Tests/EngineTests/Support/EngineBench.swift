import Foundation
import Identity
import Replication
import Storage
import TestSupport
import Testing
import Wire

@testable import Engine

/// Directories that go with the last who uses them.
final class BenchDirectories {
  var paths: [String] = []
  deinit { for path in paths { try? FileManager.default.removeItem(atPath: path) } }
}

/// Engines of one fleet, connected in memory, on a clock that the test moves. The same seed runs the same way.
final class EngineBench {
  let founding: FleetFounding
  let clock = BenchClock()
  var random: SplitMix64
  private(set) var nodes: [BenchNode] = []
  private let root: StatementSigner
  /// What the root has said, in its order.
  private var saidByRoot: [Statement]
  /// Lives as long as a node does: a store whose file is gone takes no write.
  let directories = BenchDirectories()
  private var nextSession: UInt64 = 1
  /// What the nodes' options are, also after a restart.
  private let change: (inout EngineOptions) -> Void

  /// A frame, or the end of a connection, on its way to an engine.
  private enum Arrival {
    case frame(to: Int, SessionID, [UInt8])
    case end(to: Int, SessionID)
  }

  private var wire: [Arrival] = []
  /// What comes to a node in the same turn as a frame, before it.
  var companions: (EngineEvent, Int) -> [EngineEvent] = { _, _ in [] }
  private var ends: [SessionID: (Int, Int)] = [:]

  /// The founder is node 0; all others are members by root's word, which all know.
  init(_ count: Int = 1, seed: UInt64 = 1, _ change: @escaping (inout EngineOptions) -> Void = { _ in }) throws {
    self.change = change
    var random = SplitMix64(seed: seed)
    founding = try FleetFounding.make(fleetName: "f", user: "u", label: "l") { random.bytes($0) }
    self.random = random
    root = StatementSigner(fleet: founding.fleet, key: founding.rootKey)
    saidByRoot = founding.statements
    let keys = (0..<count).map { $0 == 0 ? founding.deviceKey : SigningKey { random.bytes($0) } }
    self.random = random
    for (index, key) in keys.enumerated().dropFirst() {
      _ = try membership(of: key.publicKey, label: Text("node \(index)"))
    }
    for key in keys { try add(directory: try directory(), key: key, mark: BenchMark(), saidByRoot, change) }
  }

  // MARK: Statements

  /// In the name of the fleet's root.
  func statement(_ body: Statement.Body) throws -> Statement {
    let statement = try root.sign(body, after: saidByRoot.last)
    saidByRoot.append(statement)
    return statement
  }

  func grant(_ level: AccessLevel, ends: [Statement.PartitionEnds] = []) throws -> Statement {
    try statement(
      .grant(
        Statement.Grant(subject: .everyone, level: level, pattern: "*", listing: Statement.Listing(ends: ends))))
  }

  func membership(of device: PublicKey, label: Text, role: Text = "officer") throws -> Statement {
    try statement(
      .membership(
        Statement.Membership(device: device, user: "user", label: label, role: role, profile: ValueMap())))
  }

  // MARK: Nodes

  func directory() throws -> String {
    let path = NSTemporaryDirectory() + "/seamesh-engine-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    directories.paths.append(path)
    return path
  }

  func newKey() -> SigningKey {
    var bytes: [UInt8] = []
    while bytes.count < SigningKey.seedByteCount { bytes.append(UInt8.random(in: 0...255, using: &random)) }
    return SigningKey { _ in bytes }
  }

  /// Answers the place of the new node.
  @discardableResult
  func add(
    directory: String, key: SigningKey, mark: BenchMark, _ statements: [Statement] = [],
    formats: KnownFormats = .all, _ change: (inout EngineOptions) -> Void = { _ in }
  ) throws -> Int {
    nodes.append(
      try BenchNode(
        self, directory: directory, key: key, mark: mark, statements: statements, formats: formats, change))
    wireUp(nodes.count - 1)
    return nodes.count - 1
  }

  /// Another member, who knows of what the root said last.
  func messenger(_ statement: Statement) throws -> Int {
    precondition(saidByRoot.last?.id == statement.id, "the root has said something else since")
    return try addMember()
  }

  /// Another member, who knows of everything that the root has said.
  @discardableResult
  func addMember(formats: KnownFormats = .all) throws -> Int {
    let key = newKey()
    _ = try membership(of: key.publicKey, label: "late")
    return try add(directory: try directory(), key: key, mark: BenchMark(), saidByRoot, formats: formats)
  }

  private func wireUp(_ slot: Int) {
    nodes[slot].links.deliver = { [unowned self] frame, session in
      if let other = other(slot, session) { wire.append(.frame(to: other, session, frame)) }
    }
    nodes[slot].links.hangUp = { [unowned self] session in
      guard let ends = ends.removeValue(forKey: session) else { return }
      wire += [.end(to: ends.0, session), .end(to: ends.1, session)]
    }
  }

  private func other(_ slot: Int, _ session: SessionID) -> Int? { ends[session].map { $0.0 == slot ? $0.1 : $0.0 } }

  /// Without a goodbye, as after a loss of power.
  func restart(_ slot: Int, _ statements: [Statement] = [], formats: KnownFormats = .all) throws {
    let (path, key, mark) = (nodes[slot].directory, nodes[slot].key, nodes[slot].mark)
    for session in ends.keys.sorted() where ends[session]?.0 == slot || ends[session]?.1 == slot { cut(session) }
    nodes.remove(at: slot)
    let node = try BenchNode(
      self, directory: path, key: key, mark: mark, statements: statements, formats: formats, change)
    nodes.insert(node, at: slot)
    wireUp(slot)
    run()
  }

  /// A copy of the node's directory that runs beside it; neither has a reason to doubt itself.
  func clone(_ slot: Int) throws -> Int {
    let (path, key, mark) = (nodes[slot].directory, nodes[slot].key, nodes[slot].mark)
    nodes.remove(at: slot)
    let copy = try directory()
    try FileManager.default.removeItem(atPath: copy)
    try FileManager.default.copyItem(atPath: path, toPath: copy)
    nodes.insert(try BenchNode(self, directory: path, key: key, mark: mark, statements: []), at: slot)
    wireUp(slot)
    let other = BenchMark()
    other.saved = mark.saved
    return try add(directory: copy, key: key, mark: other)
  }

  // MARK: Connections

  /// `dialer` has reached `listener`; what they say waits for ``run()``.
  @discardableResult
  func connect(_ dialer: Int, _ listener: Int, dialTag: UInt64 = .max) -> SessionID {
    let session = SessionID(rawValue: nextSession)
    nextSession += 1
    ends[session] = (dialer, listener)
    for (slot, other) in [(dialer, listener), (listener, dialer)] {
      let link = OpenedLink(
        session: session, dialTag: slot == dialer ? dialTag : nil,
        remote: SocketAddress(.ipv4(0x7f00_0001), port: UInt16(4_000 + other)), peerKey: nodes[other].key.publicKey,
        exporter: .zero)
      nodes[slot].engine.turn([.opened(link)])
    }
    return session
  }

  func cut(_ session: SessionID) {
    guard let ends = ends.removeValue(forKey: session) else { return }
    for slot in [ends.0, ends.1] { nodes[slot].engine.turn([.closed(session, reason: "cut")]) }
  }

  /// Until nothing is under way any more, or what is asked for holds, without time passing.
  func run(until isEnough: () -> Bool = { false }) {
    while !wire.isEmpty, !isEnough() {
      switch wire.removeFirst() {
      case .end(let slot, let session): nodes[slot].engine.turn([.closed(session, reason: "closed")])
      case .frame(let slot, let session, let frame):
        let event = event(frame, session, slot)
        nodes[slot].engine.turn(companions(event, slot) + [event])
      }
    }
  }

  /// What is under way is lost.
  func dropWire() { wire = [] }

  /// What is under way waits until all of the body is done.
  func holdWire(_ body: () throws -> Void) rethrows {
    let held = wire
    wire = []
    try body()
    wire = held + wire
  }

  /// As the thread of a connection makes it of a frame.
  func event(_ frame: [UInt8], _ session: SessionID, _ slot: Int) -> EngineEvent {
    let state = nodes[slot].state
    do {
      switch try FrameDecoder(fleet: founding.fleet, state.identity.cryptography)
        .decode(frame, under: { state.mesh.authority })
      {
      case .message(let message): return .message(session, message, byteCount: frame.count)
      case .runs(let batch, let runs): return .runs(session, batch, runs, byteCount: frame.count)
      case .nothing: return .drained(session)
      }
    } catch {
      return .violation(session, BrokenRun.rule(of: error), at: BrokenRun.place(of: error))
    }
  }

  func advance(_ milliseconds: UInt64) {
    clock.advance(milliseconds)
    for node in nodes { node.engine.turn([]) }
    run()
  }

  /// Connects and lets everything flow that the two have for one another.
  @discardableResult
  func meet(_ dialer: Int, _ listener: Int) -> SessionID {
    let session = connect(dialer, listener)
    run()
    for _ in 0..<4 { advance(100) }
    return session
  }

  /// Two nodes that have met, of which the first has written a document, "first", and the second shows it.
  static func pair(
    in room: PartitionName, _ change: @escaping (inout EngineOptions) -> Void = { _ in }
  ) throws -> (EngineBench, SessionID) {
    let bench = try EngineBench(2, change)
    for node in bench.nodes { try node.subscribe("room=*") }
    try bench.nodes[0].write(room, Put("first"))
    let session = bench.meet(1, 0)
    try #require(try bench.nodes[1].shown(room, "first") != nil)
    return (bench, session)
  }
}
