import Dispatch
import Seamesh
import Synchronization
import Wire

/// What every request of one listener shares.
final class RequestService: Sendable {
  let node: any NodeInterface
  let admission: Admission
  let router: Router
  let budget: BodyBudget
  let values: BodyBudget
  let streams: StreamSupervisor
  let patience: LocalServerConfiguration.Patience
  let connections: ConnectionTable

  init(
    node: any NodeInterface, admission: Admission, router: Router, budget: BodyBudget, values: BodyBudget,
    streams: StreamSupervisor,
    connections: ConnectionTable, patience: LocalServerConfiguration.Patience
  ) {
    (self.node, self.admission, self.router) = (node, admission, router)
    (self.budget, self.values, self.streams) = (budget, values, streams)
    (self.connections, self.patience) = (connections, patience)
  }

  /// As long as the answer is being made, what is read of the body counts with what is read of others.
  func answer(_ route: Route, _ request: Request) -> Response {
    let values = RequestService.values(of: request.body, route)
    guard self.values.reserve(values) else { return Problem.tooManyAtOnce.response }
    defer { self.values.release(values) }
    return answered(route, request)
  }

  private static func values(of body: [UInt8], _ route: Route) -> Int {
    // Between two of them stands a comma or a bracket.
    guard body.count > 2 * ServerLimit.littleValues else { return 0 }
    let count = min(ExtendedJSON.valueCountAtMost(in: body[...]), route.body.valueLimit)
    return count > ServerLimit.littleValues ? count : 0
  }

  private func answered(_ route: Route, _ request: Request) -> Response {
    do {
      guard !route.unixSocketOnly || request.channel == .unixSocket else {
        throw Problem(.notPermitted, "this is answered on the Unix socket only")
      }
      return try route.answer(request, Surroundings(node: node, streams: streams, routes: router.routes))
    } catch {
      return Problem(any: error).response
    }
  }
}

/// What a handler may use.
struct Surroundings {
  let node: any NodeInterface
  let streams: StreamSupervisor
  let routes: [Route]
}

/// Tells open streams that the server stops, and waits for the work behind them.
final class StreamSupervisor: Sendable {
  private let stopping = Mutex(false)
  private let producers = DispatchGroup()

  var isStopping: Bool { stopping.withLock { $0 } }

  /// Runs blocking work on a thread of its own, so that neither the cooperative pool nor a connection waits for it.
  func produce(_ label: String, _ work: @escaping @Sendable () -> Void) {
    DispatchQueue(label: "seamesh.api.\(label)").async(group: producers, execute: DispatchWorkItem(block: work))
  }

  func stop() { stopping.withLock { $0 = true } }

  /// Whether all work had ended within the time.
  func wait(milliseconds: Int) -> Bool {
    producers.wait(timeout: .now() + .milliseconds(milliseconds)) == .success
  }
}
