import Replication
import Wire

/// Judges who asks to be admitted, and for how long an address that shows wrong codes is not looked at.
struct Admissions {
  private var gate = JoinGate()

  /// `host`: nil where the connection has gone.
  mutating func judge(
    _ request: JoinRequest, exporter: Digest, from host: SocketAddress.Host?, _ state: EngineState
  ) -> JoinDesk.Decision {
    guard let host, gate.isOpen(to: host, state.clock.now) else { return .refused(.busy) }
    let decision = JoinDesk(state: state).judge(request, exporter: exporter)
    if case .refused(.wrongCode) = decision { gate.charge(host, state.clock.now) }
    return decision
  }
}
