/// What peers want, by device: spares the question on every reconnect.
struct InterestCache: Sendable {
  static let limit = 256
  /// Partitions and prefixes of all interests that are remembered: the largest go first.
  static let itemLimit = 262_144

  private var remembered: [DeviceID: (digest: Digest, interest: Interest)] = [:]

  var count: Int { remembered.count }
  var itemCount: Int { remembered.values.reduce(0) { $0 + $1.interest.itemCount } }

  subscript(device: DeviceID) -> (digest: Digest, interest: Interest)? { remembered[device] }

  mutating func remember(_ interest: Interest, _ digest: Digest, of device: DeviceID) {
    if remembered[device] == nil, count >= InterestCache.limit, let first = remembered.keys.min() {
      remembered[first] = nil
    }
    remembered[device] = (digest, interest)
    var items = itemCount
    while items > InterestCache.itemLimit,
      let largest = remembered.max(by: {
        ($0.value.interest.itemCount, $0.key) < ($1.value.interest.itemCount, $1.key)
      })
    {
      items -= largest.value.interest.itemCount
      remembered[largest.key] = nil
    }
  }
}

extension Interest {
  var itemCount: Int { partitions.count + prefixes.count }
}
