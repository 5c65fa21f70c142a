import Glibc
import Seamesh
import Synchronization

package struct LocalServerConfiguration: Sendable {
  /// Absolute path of the data directory.
  package var directory: String
  /// TCP besides the Unix socket.
  package var loopback: LoopbackAddress?
  /// Where a socket goes whose path would be too long; nil for the session's.
  package var runtimeDirectory: String?
  package var patience = Patience()
  /// Over all listeners; each has ``ServerLimit/connections`` at the most.
  package var connections = Int(ServerLimit.connections) * 2

  /// How long a client may take.
  package struct Patience: Sendable {
    package var idleSeconds = ServerLimit.idleSeconds
    package var requestMilliseconds = ServerLimit.requestMilliseconds
    package init() {}
  }

  package init(directory: String, loopback: LoopbackAddress? = nil, runtimeDirectory: String? = nil) {
    (self.directory, self.loopback, self.runtimeDirectory) = (directory, loopback, runtimeDirectory)
  }
}

/// Where a local interface can be reached.
package struct LocalEndpoints: Sendable, Equatable {
  package let socket: String
  /// The data directory's path was too long for a socket: `api.sock` there is a link to this one.
  package let socketIsElsewhere: Bool
  package let url: String?
  package let tokenFile: String?
  /// Others could read the token that was there: the file holds a new one, and nobody is admitted with the other.
  package var isTokenReplaced = false
}

/// The local HTTP interface of one node.
package final class LocalServer: Sendable {
  package let endpoints: LocalEndpoints
  private let unixSocket: UnixSocketPath
  private let streams: StreamSupervisor
  private let daemons: Mutex<[HTTPDaemon]>

  package static func start(
    node: any NodeInterface, configuration: LocalServerConfiguration
  ) throws(LocalServerError) -> LocalServer {
    try LocalServer(node, configuration)
  }

  private init(_ node: any NodeInterface, _ configuration: LocalServerConfiguration) throws(LocalServerError) {
    let path = try UnixSocketPath(
      directory: configuration.directory, runtimeDirectory: configuration.runtimeDirectory)
    let (streams, router) = (StreamSupervisor(), Router(routes: allRoutes))
    let budget = BodyBudget(limit: ServerLimit.allBodiesBytes)
    let values = BodyBudget(limit: ServerLimit.allBodiesValues)
    let listeners = configuration.loopback == nil ? 1 : 2
    let connections = min(ServerLimit.connections, UInt32(clamping: max(1, configuration.connections / listeners)))
    let serve = { (listener: Int32, admission: Admission) throws(LocalServerError) -> HTTPDaemon in
      try HTTPDaemon(
        listener: listener, connections: connections,
        service: RequestService(
          node: node, admission: admission, router: router, budget: budget, values: values, streams: streams,
          connections: ConnectionTable(limit: Int(connections), configuration.patience),
          patience: configuration.patience))
    }
    let unix = try serve(
      try listenOnUnixSocket(at: path.path), Admission(channel: .unixSocket, token: nil, port: 0))
    var daemons = [unix]
    var (url, tokenFile, isTokenReplaced): (String?, String?, Bool) = (nil, nil, false)
    do throws(LocalServerError) {
      try path.link()
      if let address = configuration.loopback {
        let file = configuration.directory + "/" + BearerToken.fileName
        // First: that a token is replaced is told of a start that goes on.
        let (listener, port) = try listen(on: address)
        let token: BearerToken
        do throws(LocalServerError) { token = try BearerToken(path: file) } catch {
          close(listener)
          throw error
        }
        daemons.append(try serve(listener, Admission(channel: .loopback, token: token, port: port)))
        (tokenFile, isTokenReplaced) = (file, token.isReplaced)
        url = "http://\(LoopbackAddress(host: address.host, port: port).authority)"
      }
    } catch {
      unix.stop()
      path.remove()
      throw error
    }
    unixSocket = path
    self.streams = streams
    self.daemons = Mutex(daemons)
    endpoints = LocalEndpoints(
      socket: path.path, socketIsElsewhere: path.isElsewhere, url: url, tokenFile: tokenFile,
      isTokenReplaced: isTokenReplaced)
  }

  /// Ends open streams, closes every connection and removes the socket. Once is enough; further calls do nothing.
  package func stop() {
    let daemons = self.daemons.withLock { daemons in
      defer { daemons = [] }
      return daemons
    }
    guard !daemons.isEmpty else { return }
    streams.stop()
    unixSocket.remove()
    for daemon in daemons { daemon.stop() }
    _ = streams.wait(milliseconds: 1_000)
  }
}
