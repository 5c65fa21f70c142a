import Replication

/// One name on its way to addresses: SRV and TXT first, then A and AAAA of the host. Confined to the responder's thread.
final class ResolveJob {
  /// The library itself gives up after 5 s.
  static let timeoutMilliseconds: UInt64 = 6_000
  /// Nothing says that an answer was the last one: so long the others are waited for.
  static let settleMilliseconds: UInt64 = 400
  static let addressLimit = 16

  let key: ServiceDirectory.Key
  private(set) var references: [ServiceReference]
  private(set) var endsAt: MonotonicTime
  private var port: UInt16 = 0
  private var tag: [UInt8] = []
  private var hosts: Set<SocketAddress.Host> = []

  /// Nil where the library refuses.
  init?(_ key: ServiceDirectory.Key, _ now: MonotonicTime) {
    guard let reference = try? ServiceReference.resolve(key.name, on: key.interface) else { return nil }
    (self.key, self.references) = (key, [reference])
    endsAt = now.advanced(byMilliseconds: ResolveJob.timeoutMilliseconds)
  }

  /// Nil as long as no address is known.
  var resolution: ServiceDirectory.Resolution? {
    guard !hosts.isEmpty, port != 0 else { return nil }
    return .init(addresses: hosts.map { SocketAddress($0, port: port) }.sorted(), tag: tag)
  }

  func handle(_ event: ServiceEvent, _ now: MonotonicTime) {
    switch event {
    case .resolved(let host, let port, let record):
      self.port = port
      tag = ServiceRecord.tag(in: record)
      references = ServiceReference.AddressType.allCases.compactMap {
        try? ServiceReference.query(host, $0, on: key.interface)
      }
      if references.isEmpty { endsAt = now }
    case .address(let host):
      guard hosts.count < ResolveJob.addressLimit else { return }
      hosts.insert(host)
      endsAt = min(endsAt, now.advanced(byMilliseconds: ResolveJob.settleMilliseconds))
    case .failed: endsAt = now
    case .registered, .appeared, .vanished: return
    }
  }
}
