import Glibc

/// Who may ask at all. Checked before anything of a request is looked at.
struct Admission: Sendable {
  let channel: Channel
  /// Set on loopback.
  let token: BearerToken?
  let port: UInt16

  func check(_ headers: HeaderList, socket: Int32) throws(Problem) {
    switch channel {
    case .unixSocket: try checkPeer(socket)
    case .loopback:
      try checkHost(headers)
      try checkToken(headers)
    }
    // A browser sends Origin with whatever a page makes it ask; no page is a client of this interface.
    guard headers.all("origin").isEmpty else {
      throw Problem(.notPermitted, "a request with an Origin comes from a web page, and none may ask here")
    }
  }

  private func checkPeer(_ socket: Int32) throws(Problem) {
    guard let user = peerUser(of: socket), user == geteuid() || user == 0 else {
      throw Problem(.notPermitted, "this socket serves the user that runs the node, and root")
    }
  }

  /// A name that an attacker's DNS points at 127.0.0.1 arrives here with the attacker's Host (DNS rebinding).
  private func checkHost(_ headers: HeaderList) throws(Problem) {
    let hosts = headers.all("host")
    let allowed = ["localhost", "127.0.0.1", "[::1]"].flatMap { [$0, "\($0):\(port)"] }
    guard hosts.count == 1, let host = hosts.first, allowed.contains(host.lowercased()) else {
      throw Problem(.misdirected, "the Host must be localhost, 127.0.0.1 or [::1] with this node's port")
    }
  }

  private func checkToken(_ headers: HeaderList) throws(Problem) {
    let credentials = headers.all("authorization")
    let scheme = "bearer "
    guard let token, credentials.count == 1, let given = credentials.first?.utf8,
      given.prefix(scheme.utf8.count).elementsEqual(scheme.utf8, by: { $0 | 0x20 == $1 }),
      token.matches(given.dropFirst(scheme.utf8.count))
    else {
      throw Problem(
        .unauthorized, "send the header Authorization: Bearer with the token that stands in \(BearerToken.fileName)"
      ).with("WWW-Authenticate", "Bearer realm=\"seamesh\"")
    }
  }
}
