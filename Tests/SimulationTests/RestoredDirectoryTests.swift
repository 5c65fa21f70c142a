import Replication
import SimulatedDisk
import Storage
import Testing

@testable import Simulation

@Suite("A directory into which a world puts a backup") struct RestoredDirectoryTests {
  @Test("its log is another one than before and than any other, as behind a backup that is shipped")
  func log() throws {
    let (fleet, device) = (FleetID(.zero), DeviceID(.zero))
    var directory = NodeDirectory(medium: .disk(SimulatedDisk()))
    var ends: [LogPosition] = []
    for copy in 0...2 {
      if copy > 0 { directory.markRestored(fleet, device, copy: UInt64(copy)) }
      let store = try #require(try directory.medium.open(fleet, device, storeID: .zero) as? Store)
      ends.append(store.end)
    }
    for end in ends { #expect(ends.count { $0.belongs(to: end) } == 1) }
  }
}
