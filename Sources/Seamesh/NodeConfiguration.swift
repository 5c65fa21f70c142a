import Engine
import Links
import Replication

/// How a node runs. The command's options and `seamesh.json` fill this in.
package struct NodeConfiguration: Sendable {
  /// Nil: every interface.
  package var listenHost: SocketAddress.Host?
  /// 0 picks one.
  package var listenPort: UInt16 = 0
  package var peers: [PeerAddress] = []
  package var usesDiscovery = true
  /// Dials peers that were met before.
  package var dialsRemembered = true
  /// Subscribes to everything that peers offer and this node may hold.
  package var isRelay = false
  /// Classes of links, their bytes a day, and what passes on them.
  package var links: [LinkRule] = []
  package var logLevel = LogLevel.notice
  /// Nil: standard error.
  package var logPath: String?
  /// How long a node whose store has gone asks for its fleet before it fails.
  package var recoveryMilliseconds: UInt64 = 30_000
  /// Asked meanwhile, on the engine thread: whether to stop asking.
  package var isRecoveryGivenUp: @Sendable () -> Bool = { false }
  package var mesh = MeshConfiguration()
  package var reads = ReadLimits()
  package var watch = WatchRules()
  /// Nil: what the process may have open.
  package var descriptors: DescriptorBudget?
  /// Nil but in tests of several builds.
  package var testBuild: TestBuildSwitch?

  package init() {}
}
