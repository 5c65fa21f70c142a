import Replication

extension CBORWriter {
  mutating func spent(_ devices: SpentDevices) {
    message(.spent, items: 2)
    for list in [devices.places, devices.branches] {
      arrayHeader(list.count)
      for device in list.sorted() { publicKey(device) }
    }
  }
}

extension CBORReader {
  mutating func spent(_ items: Int) throws(CBORError) -> SpentDevices {
    try expect(items, 2)
    return SpentDevices(places: try devices(), branches: try devices())
  }

  /// Ascending.
  private mutating func devices() throws(CBORError) -> Set<PublicKey> {
    var last: PublicKey?
    return Set(
      try list(limit: SpentDevices.limit) { reader throws(CBORError) in
        let start = reader.offset
        let device = try reader.readPublicKey()
        guard last.map({ $0 < device }) ?? true else { throw CBORError(.keyOrder, at: start) }
        last = device
        return device
      })
  }
}
