import Glibc
import Transport

/// How the files that this process may have open are shared out (K4): what the node cannot do without comes first, and peers and
/// users get the rest.
package struct DescriptorBudget: Sendable, Equatable {
  /// Files that may be open at once.
  package let limit: Int
  /// Connections of peers.
  package let peers: Int
  /// Connections of users of the local interface, over all of its listeners.
  package let users: Int

  /// Store, readers, logs, keys, discovery and the process itself.
  static let ownFiles = 44
  private static let leastConnections = 4
  /// A node with fewer connections of peers than this should know why.
  private static let plentyOfPeers = 64

  /// - Parameters:
  ///   - peers: connections of peers where there is no want of files.
  ///   - users: the same of users.
  package init(limit: Int, peers: Int = TransportConfiguration().connectionLimit, users: Int = 160) {
    let spare = max(0, limit - DescriptorBudget.ownFiles)
    self.limit = limit
    self.peers = min(peers, max(DescriptorBudget.leastConnections, spare / 2))
    self.users = min(users, max(DescriptorBudget.leastConnections, spare - min(peers, spare / 2)))
  }

  package static var ofProcess: DescriptorBudget {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
      return DescriptorBudget(limit: 1_024)
    }
    return DescriptorBudget(limit: Int(clamping: limit.rlim_cur))
  }

  /// Takes as many as the system gives without asking anybody, up to what a node can use. For whoever owns the process.
  package static func raise() {
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard getrlimit(resource, &limit) == 0, limit.rlim_cur < usefulFiles, limit.rlim_max > limit.rlim_cur else {
      return
    }
    limit.rlim_cur = min(limit.rlim_max, usefulFiles)
    setrlimit(resource, &limit)
  }

  private static let usefulFiles: rlim_t = 1_024

  var isScarce: Bool { peers < DescriptorBudget.plentyOfPeers }

  /// Live results: some connections are kept for others.
  var followers: Int { min(CommitFeed.followerLimit, max(1, users * 3 / 4)) }

  var transport: TransportConfiguration {
    var configuration = TransportConfiguration()
    guard peers < configuration.connectionLimit else { return configuration }
    configuration.connectionLimit = peers
    configuration.unauthenticatedLimit = min(configuration.unauthenticatedLimit, max(2, peers / 2))
    configuration.unauthenticatedPerSourceLimit =
      min(configuration.unauthenticatedPerSourceLimit, max(1, configuration.unauthenticatedLimit / 2))
    return configuration
  }

  /// So long a want of files is a problem after a connection found none.
  static let memoryMilliseconds: UInt64 = 10 * 60 * 1_000

  func finding(_ figures: NodeGauges.Figures) -> DoctorFinding? {
    let isWanting = figures.failedToAccept.map { $0 <= DescriptorBudget.memoryMilliseconds } ?? false
    guard isScarce || isWanting else { return nil }
    let missed =
      figures.acceptFailures == 0
      ? ""
      : " Since the start a connection found none \(figures.acceptFailures == 1 ? "once" : "\(figures.acceptFailures) times")."
    return DoctorFinding(
      isWanting ? .problem : .warning, "few-files",
      "This process may have only \(limit) files open: \(counted(peers, "connection")) of peers and \(users) of users.\(missed)",
      remedy: "Allow it more before it starts: LimitNOFILE= in its systemd unit, or ulimit -n 1024.")
  }
}
