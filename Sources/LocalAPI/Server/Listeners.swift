import Glibc

/// Opens a listening TCP socket on loopback and says which port it got.
func listen(on address: LoopbackAddress) throws(LocalServerError) -> (socket: Int32, port: UInt16) {
  let isV6 = address.host == .v6
  let listener = socket(isV6 ? AF_INET6 : AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
  guard listener >= 0 else { throw .system("cannot open a socket", errno) }
  var on: Int32 = 1
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
  let bound = isV6 ? bindV6(listener, address.port) : bindV4(listener, address.port)
  guard bound == 0, Glibc.listen(listener, Int32(ServerLimit.connections)) == 0 else {
    let code = errno
    close(listener)
    throw .system("cannot listen on \(address.authority)", code)
  }
  return (listener, boundPort(listener))
}

private func bindV4(_ listener: Int32, _ port: UInt16) -> Int32 {
  var name = sockaddr_in()
  name.sin_family = sa_family_t(AF_INET)
  name.sin_port = port.bigEndian
  name.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
  return withSocketAddress(&name) { bind(listener, $0, $1) }
}

private func bindV6(_ listener: Int32, _ port: UInt16) -> Int32 {
  var name = sockaddr_in6()
  name.sin6_family = sa_family_t(AF_INET6)
  name.sin6_port = port.bigEndian
  name.sin6_addr = in6addr_loopback
  return withSocketAddress(&name) { bind(listener, $0, $1) }
}

private func boundPort(_ listener: Int32) -> UInt16 {
  // The port stands at the same place in both families' addresses.
  var name = sockaddr_in6()
  var size = socklen_t(MemoryLayout<sockaddr_in6>.size)
  _ = withSocketAddress(&name) { address, _ in getsockname(listener, address, &size) }
  return UInt16(bigEndian: name.sin6_port)
}

private func withSocketAddress<Name, Result>(
  _ name: inout Name, _ body: (UnsafeMutablePointer<sockaddr>, socklen_t) -> Result
) -> Result {
  withUnsafeMutablePointer(to: &name) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<Name>.size)) }
  }
}

/// Opens a listening Unix socket that only its owner can connect to. What stood at `path` is replaced: the directory's
/// lock says that no other node runs on it.
func listenOnUnixSocket(at path: String) throws(LocalServerError) -> Int32 {
  var name = sockaddr_un()
  name.sun_family = sa_family_t(AF_UNIX)
  let bytes = Array(path.utf8)
  guard bytes.count <= UnixSocketPath.byteLimit else {
    throw .pathTooLong(path, limit: UnixSocketPath.byteLimit)
  }
  withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: bytes) }
  let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
  guard listener >= 0 else { throw .system("cannot open a socket", errno) }
  guard unlink(path) == 0 || errno == ENOENT else {
    let code = errno
    close(listener)
    throw .system("\(path) is in the way of the socket and cannot be removed", code)
  }
  // Nobody can connect before `listen`, so the mode is right before the first peer comes.
  guard withSocketAddress(&name, { bind(listener, $0, $1) }) == 0, chmod(path, 0o600) == 0,
    Glibc.listen(listener, Int32(ServerLimit.connections)) == 0
  else {
    let code = errno
    close(listener)
    throw .system("cannot listen on \(path)", code)
  }
  return listener
}
