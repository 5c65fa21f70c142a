import CDNSSD
import Replication

/// An error code of the DNS-SD library.
struct ServiceError: Error, Equatable { let code: Int32 }

/// What an operation of the library reports.
enum ServiceEvent: Equatable {
  case registered
  case appeared(name: String, interface: UInt32)
  case vanished(name: String, interface: UInt32)
  case resolved(host: String, port: UInt16, record: [UInt8])
  case address(SocketAddress.Host)
  /// The operation is dead; if the daemon died, so are all others, and none recovers by itself.
  case failed(ServiceError)
}

/// One operation of the DNS-SD library: a connection to the daemon, a thread and five descriptors of this process.
///
/// Confined to the responder's thread. Every call here may block for 25 s when the daemon hangs.
final class ServiceReference {
  private var reference: DNSServiceRef?
  private var events: [ServiceEvent] = []

  private init() {}

  deinit { if let reference { DNSServiceRefDeallocate(reference) } }

  /// Readable when ``process()`` has something to do.
  var descriptor: Int32 { reference.map { DNSServiceRefSockFD($0) } ?? -1 }

  func process() -> [ServiceEvent] {
    guard let reference else { return [] }
    let code = DNSServiceProcessResult(reference)
    if code != kDNSServiceErr_NoError { events.append(.failed(ServiceError(code: code))) }
    defer { events = [] }
    return events
  }

  private func start(
    _ make: (UnsafeMutablePointer<DNSServiceRef?>, UnsafeMutableRawPointer) -> DNSServiceErrorType
  ) throws(ServiceError) -> ServiceReference {
    precondition(ResponderLibrary.isPrepared)
    var made: DNSServiceRef?
    let code = make(&made, Unmanaged.passUnretained(self).toOpaque())
    guard code == kDNSServiceErr_NoError, let made else { throw ServiceError(code: code) }
    reference = made
    return self
  }

  /// Called by the library inside `process` or `start`, on the same thread; strings are null where there is an error.
  private static func note(_ context: UnsafeMutableRawPointer?, _ code: Int32, _ event: () -> ServiceEvent?) {
    guard let context else { return }
    let reference = Unmanaged<ServiceReference>.fromOpaque(context).takeUnretainedValue()
    if code != kDNSServiceErr_NoError {
      reference.events.append(.failed(ServiceError(code: code)))
    } else if let event = event() {
      reference.events.append(event)
    }
  }

  // MARK: The four operations. Flags must be 0: avahi knows no others.

  static func register(_ advertisement: Advertisement) throws(ServiceError) -> ServiceReference {
    let record = ServiceRecord.bytes(tag: advertisement.tag)
    return try ServiceReference().start { made, context in
      DNSServiceRegister(
        made, 0, 0, advertisement.instance, ServiceRecord.type, nil, nil, advertisement.port.bigEndian,
        UInt16(clamping: record.count), record,
        { _, _, code, _, _, _, context in ServiceReference.note(context, code) { .registered } }, context)
    }
  }

  static func browse() throws(ServiceError) -> ServiceReference {
    try ServiceReference().start { made, context in
      DNSServiceBrowse(
        made, 0, 0, ServiceRecord.type, "local.",
        { _, flags, interface, code, name, _, _, context in
          ServiceReference.note(context, code) {
            guard let name, let name = String(validatingCString: name) else { return nil }
            let isAdded = flags & UInt32(kDNSServiceFlagsAdd) != 0
            return isAdded ? .appeared(name: name, interface: interface) : .vanished(name: name, interface: interface)
          }
        }, context)
    }
  }

  static func resolve(_ name: String, on interface: UInt32) throws(ServiceError) -> ServiceReference {
    try ServiceReference().start { made, context in
      DNSServiceResolve(
        made, 0, interface, name, ServiceRecord.type, "local.",
        { _, _, _, code, _, host, port, recordLength, record, context in
          ServiceReference.note(context, code) {
            guard let host, let host = String(validatingCString: host) else { return nil }
            let bytes = Array(UnsafeBufferPointer(start: record, count: record == nil ? 0 : Int(recordLength)))
            return .resolved(host: host, port: UInt16(bigEndian: port), record: bytes)
          }
        }, context)
    }
  }

  enum AddressType: UInt16, CaseIterable { case ipv4 = 1, ipv6 = 28 }

  static func query(
    _ host: String, _ type: AddressType, on interface: UInt32
  ) throws(ServiceError) -> ServiceReference {
    try ServiceReference().start { made, context in
      DNSServiceQueryRecord(
        made, 0, interface, host, type.rawValue, UInt16(kDNSServiceClass_IN),
        { _, flags, interface, code, _, type, _, length, data, _, context in
          ServiceReference.note(context, code) {
            guard flags & UInt32(kDNSServiceFlagsAdd) != 0, let data else { return nil }
            let bytes = UnsafeRawBufferPointer(start: data, count: Int(length))
            return SocketAddress.Host(record: bytes, type: type, interface: interface).map { .address($0) }
          }
        }, context)
    }
  }
}

extension SocketAddress.Host {
  /// The data of an A or AAAA record. A link-local address is meant on the interface it was heard on (N7).
  init?(record: UnsafeRawBufferPointer, type: UInt16, interface: UInt32) {
    switch (ServiceReference.AddressType(rawValue: type), record.count) {
    case (.ipv4?, 4): self = .ipv4(record.reduce(0) { $0 << 8 | UInt32($1) })
    case (.ipv6?, 16):
      let high = record.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
      let low = record.suffix(8).reduce(0) { $0 << 8 | UInt64($1) }
      self.init(high: high, low: low, scope: interface)
    default: return nil
    }
  }
}
