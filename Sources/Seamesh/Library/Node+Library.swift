import Identity
import Replication
import Transport

extension Node {
  /// How a node of an app runs.
  public struct Options: Sendable {
    /// Where it listens for peers; 0 picks a port, which peers learn by discovery.
    public var port: UInt16 = 0
    /// Listens on this machine alone.
    public var isLocalOnly = false
    /// Peers to dial beside those that discovery finds, as `HOST:PORT`.
    public var peers: [String] = []
    /// Looks for peers by mDNS and, where no responder answers, by beacons.
    public var usesDiscovery = true

    public init() {}
  }

  /// Is this a directory that ``createFleet(named:user:device:in:isClosed:)`` or ``joinFleet(code:device:in:options:)`` made?
  public static func isSetUp(_ directory: String) -> Bool { NodeSetup.isSetUp(directory) }

  /// Makes a fleet in a directory that is new or empty, with this device as its first. The fleet's root key lies there as
  /// a file: move it to paper or a USB stick. In a closed fleet nobody but admins may do what no rule allows, until it is
  /// granted; in an open one all members write.
  public static func createFleet(
    named name: String, user: String, device label: String, in directory: String, isClosed: Bool = false
  ) async throws(NodeError) {
    try await Blocking.run { () throws(NodeError) in
      _ = try NodeSetup.found(
        directory, fleetName: Text(name), user: Text(user), label: Text(label), profile: ValueMap(),
        isClosed ? .closed : .open)
    }
  }

  /// Makes a directory that is new or empty that of a device of the fleet whose member gave the join code. A node of that
  /// fleet must be in reach.
  public static func joinFleet(
    code: String, device label: String, in directory: String, options: Options = Options()
  ) async throws(NodeError) {
    let peers = try options.addresses()
    try await Blocking.run { () throws(NodeError) in
      _ = try NodeSetup.join(
        directory, code: code, label: Text(label), peers: peers, usesDiscovery: options.usesDiscovery)
    }
  }

  /// Starts the node of a directory that was set up. One node runs on a directory at a time.
  public static func open(_ directory: String, options: Options = Options()) async throws(NodeError) -> Node {
    var configuration = NodeConfiguration()
    if options.isLocalOnly { configuration.listenHost = .ipv4(0x7f00_0001) }
    configuration.listenPort = options.port
    configuration.peers = try options.addresses()
    configuration.usesDiscovery = options.usesDiscovery
    let ready = configuration
    return try await Blocking.run { () throws(NodeError) in try Node.start(directory: directory, configuration: ready) }
  }

  /// A code with which one other device joins this fleet within a day. Whoever has it first can enter: treat it as a key.
  public func joinCode(forUser user: String) async throws(NodeError) -> String {
    try await Blocking.run { () throws(NodeError) in
      try self.invite(InviteRequest(user: Text(user), role: "", profile: ValueMap())).code
    }
  }

  /// Follows a partition, or every one whose name begins with what stands before a `*` at the end.
  public func subscribe(to pattern: String) async throws(NodeError) {
    try await Blocking.run { () throws(NodeError) in _ = try self.subscribe(Text(pattern)) }
  }

  /// Takes in nothing new of it any more. What is here stays.
  public func unsubscribe(from pattern: String) async throws(NodeError) {
    try await Blocking.run { () throws(NodeError) in try self.unsubscribe(Text(pattern)) }
  }

  /// Where peers can reach this node, as `HOST:PORT`; the host is `0.0.0.0` or `::` where it listens on all interfaces.
  public var listenAddresses: [String] { endpoints.listen.map { "\($0)" } }

  /// Partitions are what devices subscribe to, such as `agency=midway rangers`; a collection is a name within one.
  public func collection(_ name: String, in partition: String) throws(NodeError) -> DocumentCollection {
    DocumentCollection(node: self, partition: try self.partition(named: partition), name: Text(name))
  }

  func partition(named name: String) throws(NodeError) -> PartitionName {
    do throws(PartitionName.Invalid) { return try PartitionName(Text(name)) } catch {
      throw NodeError(.unprocessable, "a partition's name has 1 to 255 bytes and no control characters")
    }
  }
}

extension Node.Options {
  fileprivate func addresses() throws(NodeError) -> [PeerAddress] {
    var addresses: [PeerAddress] = []
    for text in peers {
      guard let address = PeerAddress(text) else {
        throw NodeError(.badRequest, "\(text) is no address of the form HOST:PORT")
      }
      addresses.append(address)
    }
    return addresses
  }
}
