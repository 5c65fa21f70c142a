import Replication

/// Who was found by which way. A value without IO; bounded against floods (N6) and stale records (N5).
struct InstanceTable {
  enum Source: Hashable, Sendable { case responder, beacon }

  enum Output: Equatable {
    case found(instance: String, addresses: [SocketAddress], tag: [UInt8])
    case lost(instance: String)
  }

  static let instanceLimit = 1_024
  static let addressesPerSource = 8
  /// A sighting without news is passed on after so long: the policy may then dial sooner.
  static let repeatMilliseconds: UInt64 = 30_000

  private struct Instance {
    var addresses: [Source: [SocketAddress]] = [:]
    var expiry: [Source: MonotonicTime] = [:]
    var tag: [UInt8]
    var toldAt: MonotonicTime

    var allAddresses: [SocketAddress] { Set(addresses.values.joined()).sorted() }
  }

  private var instances: [String: Instance] = [:]

  var count: Int { instances.count }

  /// `expiresAt` nil: until ``remove(_:from:now:)``.
  mutating func see(
    _ name: String, by source: Source, _ addresses: [SocketAddress], tag: [UInt8], now: MonotonicTime,
    expiresAt: MonotonicTime?, using random: inout some RandomNumberGenerator
  ) -> [Output] {
    var outputs: [Output] = []
    if instances[name] == nil, instances.count >= InstanceTable.instanceLimit {
      // A random one makes place, so that no order of arrival keeps others out for good.
      guard let victim = instances.keys.randomElement(using: &random) else { return [] }
      instances[victim] = nil
      outputs.append(.lost(instance: victim))
    }
    let known = instances[name]
    var instance = known ?? Instance(tag: tag, toldAt: now)
    instance.addresses[source] = Array(addresses.prefix(InstanceTable.addressesPerSource))
    instance.expiry[source] = expiresAt
    instance.tag = tag
    let isNews = known == nil || known?.allAddresses != instance.allAddresses || known?.tag != tag
    if isNews || now >= instance.toldAt.advanced(byMilliseconds: InstanceTable.repeatMilliseconds) {
      instance.toldAt = now
      outputs.append(.found(instance: name, addresses: instance.allAddresses, tag: tag))
    }
    instances[name] = instance
    return outputs
  }

  /// A beacon tells one address: that of the interface it came by. The others are kept.
  mutating func seeBeacon(
    _ advertisement: Advertisement, at address: SocketAddress, now: MonotonicTime, lifetime: UInt64,
    using random: inout some RandomNumberGenerator
  ) -> [Output] {
    let known = instances[advertisement.instance]?.addresses[.beacon] ?? []
    let addresses = known.contains(address) ? known : [address] + known.filter { $0.port == address.port }
    return see(
      advertisement.instance, by: .beacon, addresses, tag: advertisement.tag, now: now,
      expiresAt: now.advanced(byMilliseconds: lifetime), using: &random)
  }

  mutating func remove(_ name: String, from source: Source, now: MonotonicTime) -> [Output] {
    guard var instance = instances[name], instance.addresses.removeValue(forKey: source) != nil else { return [] }
    instance.expiry[source] = nil
    guard !instance.addresses.isEmpty else {
      instances[name] = nil
      return [.lost(instance: name)]
    }
    instance.toldAt = now
    instances[name] = instance
    return [.found(instance: name, addresses: instance.allAddresses, tag: instance.tag)]
  }

  /// The source is gone: what it told holds until then, unless it is told anew.
  mutating func age(_ source: Source, expiresAt: MonotonicTime) {
    for name in instances.keys where instances[name]?.addresses[source] != nil {
      instances[name]?.expiry[source] = expiresAt
    }
  }

  mutating func expire(now: MonotonicTime) -> [Output] {
    let expired = instances.flatMap { name, instance in
      instance.expiry.filter { $0.value <= now }.map { (name, $0.key) }
    }
    return expired.sorted { $0.0 < $1.0 }.flatMap { remove($0.0, from: $0.1, now: now) }
  }

  var nextExpiry: MonotonicTime? { instances.values.lazy.flatMap { $0.expiry.values }.min() }
}
