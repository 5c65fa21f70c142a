import CLinux
import Glibc

/// The user id of the process at the other end of a Unix socket; nil when the kernel does not tell.
func peerUser(of socket: Int32) -> uid_t? {
  var credentials = seamesh_peer_credentials()
  var size = socklen_t(MemoryLayout<seamesh_peer_credentials>.size)
  guard getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0,
    size == MemoryLayout<seamesh_peer_credentials>.size
  else { return nil }
  return credentials.user
}

/// Whether the other end has closed its side. Bytes that wait are left where they are.
func hasHungUp(_ socket: Int32) -> Bool {
  var byte: UInt8 = 0
  let count = recv(socket, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
  return count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)
}

/// Milliseconds of a clock that never steps.
func monotonicMilliseconds() -> Int64 {
  var now = timespec()
  clock_gettime(CLOCK_MONOTONIC, &now)
  return Int64(now.tv_sec) * 1_000 + Int64(now.tv_nsec) / 1_000_000
}
