import CLinux
import Glibc
import Replication

extension SocketAddress {
  /// Calls `body` with the address in the kernel's form.
  package func withKernelForm<R>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
    switch host {
    case .ipv4(let address):
      var form = sockaddr_in()
      form.sin_family = sa_family_t(AF_INET)
      form.sin_port = port.bigEndian
      form.sin_addr.s_addr = address.bigEndian
      return withUnsafeBytes(of: &form) { SocketAddress.call(body, $0) }
    case .ipv6(let high, let low, let scope):
      var form = sockaddr_in6()
      form.sin6_family = sa_family_t(AF_INET6)
      form.sin6_port = port.bigEndian
      form.sin6_scope_id = scope
      withUnsafeMutableBytes(of: &form.sin6_addr) { bytes in
        bytes.storeBytes(of: high.bigEndian, as: UInt64.self)
        bytes.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
      }
      return withUnsafeBytes(of: &form) { SocketAddress.call(body, $0) }
    }
  }

  private static func call<R>(
    _ body: (UnsafePointer<sockaddr>, socklen_t) -> R, _ bytes: UnsafeRawBufferPointer
  ) -> R {
    bytes.withMemoryRebound(to: sockaddr.self) { form in
      guard let base = form.baseAddress else { preconditionFailure("a socket address is never empty") }
      return body(base, socklen_t(bytes.count))
    }
  }

  /// Nil for anything but IPv4 and IPv6. IPv4 mapped into IPv6 becomes IPv4.
  package init?(_ storage: sockaddr_storage) {
    let host = withUnsafeBytes(of: storage) { bytes -> (Host, UInt16)? in
      switch Int32(storage.ss_family) {
      case AF_INET:
        let form = bytes.load(as: sockaddr_in.self)
        return (.ipv4(UInt32(bigEndian: form.sin_addr.s_addr)), UInt16(bigEndian: form.sin_port))
      case AF_INET6:
        let form = bytes.load(as: sockaddr_in6.self)
        return (Host(form.sin6_addr, scope: form.sin6_scope_id), UInt16(bigEndian: form.sin6_port))
      default: return nil
      }
    }
    guard let host else { return nil }
    self.init(host.0, port: host.1)
  }

  /// The address that `read` (`getsockname`, `getpeername`, …) puts down.
  static func read(
    _ read: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
  ) -> SocketAddress? {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let result = withUnsafeMutablePointer(to: &storage) { storage in
      storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { read($0, &length) }
    }
    return result >= 0 ? SocketAddress(storage) : nil
  }

  /// From the result of `getaddrinfo` or `getifaddrs`.
  init?(_ form: UnsafePointer<sockaddr>) {
    var storage = sockaddr_storage()
    let length: Int
    switch Int32(form.pointee.sa_family) {
    case AF_INET: length = MemoryLayout<sockaddr_in>.size
    case AF_INET6: length = MemoryLayout<sockaddr_in6>.size
    default: return nil
    }
    withUnsafeMutableBytes(of: &storage) { $0.copyMemory(from: UnsafeRawBufferPointer(start: form, count: length)) }
    self.init(storage)
  }

  var family: Int32 {
    switch host {
    case .ipv4: AF_INET
    case .ipv6: AF_INET6
    }
  }
}

extension SocketAddress.Host {
  init(_ address: in6_addr, scope: UInt32) {
    let (high, low) = withUnsafeBytes(of: address) { bytes in
      (
        UInt64(bigEndian: bytes.load(as: UInt64.self)),
        UInt64(bigEndian: bytes.load(fromByteOffset: 8, as: UInt64.self))
      )
    }
    self.init(high: high, low: low, scope: scope)
  }

  /// Keeps the scope for link-local addresses alone, so that equal addresses compare equal; unmaps mapped IPv4.
  package init(high: UInt64, low: UInt64, scope: UInt32) {
    if high == 0 && low >> 32 == 0xffff {
      self = .ipv4(UInt32(truncatingIfNeeded: low))
    } else {
      let plain = SocketAddress.Host.ipv6(high: high, low: low, scope: 0)
      self = plain.isLinkLocal ? .ipv6(high: high, low: low, scope: scope) : plain
    }
  }
}
