import Foundation
import Replication
import Testing

@testable import Identity

@Suite struct SetupMarkerTests {
  private let marker = SetupMarker(
    .join, fleet: FleetID(SHA256.hash([1])), device: DeviceID(SHA256.hash([2])), begun: "20260131T235959Z")

  @Test("what was saved is loaded, and replaced by the next one")
  func roundTrip() throws {
    try withTemporaryDirectory { directory in
      #expect(SetupMarker.load(from: directory) == .absent)
      for purpose in [SetupMarker.Purpose.join, .found] {
        let marker = SetupMarker(purpose, fleet: marker.fleet, device: marker.device, begun: "1")
        try marker.save(to: directory)
        #expect(SetupMarker.load(from: directory) == .present(marker))
      }
      #expect(try mode(of: directory.file("setup.partial")) == 0o600)
      try PrivateFile.remove(directory.file("setup.partial"))
      #expect(SetupMarker.load(from: directory) == .absent)
      try PrivateFile.remove(directory.file("setup.partial"))
    }
  }

  @Test("one that is damaged, or names a place outside the directory, tells nothing")
  func unreadable() throws {
    try withTemporaryDirectory { directory in
      let path = directory.file("setup.partial")
      try marker.save(to: directory)
      try overwrite(path, with: Array(try content(of: path).dropLast(3)))
      #expect(SetupMarker.load(from: directory) == .unreadable)
      try SetupMarker(.join, fleet: marker.fleet, device: marker.device, begun: "/../..").save(to: directory)
      #expect(SetupMarker.load(from: directory) == .unreadable)
      try marker.save(to: directory)
      try setMode(0o644, of: path)
      #expect(SetupMarker.load(from: directory) == .unreadable)
    }
  }
}
