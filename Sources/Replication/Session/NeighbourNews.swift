/// The first eight bytes of a device's id: tells the devices of a LAN apart. Taking one for another costs a delay, no more.
package struct DeviceMark: Hashable, Comparable, Sendable {
  package let word: UInt64
  package init(word: UInt64) { self.word = word }
  package init(_ device: DeviceID) { word = device.digest.words.0 }
  /// By the distance that two marks have where they differ: all who compare the same devices choose the same.
  func isNearer(to device: DeviceMark, than other: DeviceMark) -> Bool { word ^ device.word < other.word ^ device.word }

  package static func < (a: DeviceMark, b: DeviceMark) -> Bool { a.word < b.word }
}

/// With which devices its sender came to have a live session, and with which it has none any more.
package struct NeighbourNews: Sendable, Equatable {
  package let added: Set<DeviceMark>
  package let removed: Set<DeviceMark>

  /// Of each list, and of what is kept of one peer.
  package static let limit = 1_024

  package init(added: Set<DeviceMark> = [], removed: Set<DeviceMark> = []) {
    (self.added, self.removed) = (added, removed)
  }
}
