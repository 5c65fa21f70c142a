import Testing

@testable import SeameshCommand

@Suite("A verb that a signal ends while its store is taken away") struct ScratchGuardTests {
  private static let failure = Failure(.failed, "its store is gone")

  /// What the work threw, and how often it was waited for a signal before.
  private func thrown(endingFor count: Int) -> (failure: Failure?, waits: Int) {
    var waits = 0
    do throws(Failure) {
      try ScratchGuard.whileNotEnding {
        () throws(Failure) in
        throw Self.failure
      } isEnding: {
        waits < count
      } waits: {
        waits += 1
      }
      return (nil, waits)
    } catch {
      return (error, waits)
    }
  }

  @Test("what fails for want of the store says nothing before the signal has ended the process")
  func ending() {
    let (failure, waits) = thrown(endingFor: 3)
    #expect(waits == 3 && failure?.message == Self.failure.message)
  }

  @Test("what fails while nothing ends the process is said at once")
  func failing() {
    let (failure, waits) = thrown(endingFor: 0)
    #expect(waits == 0 && failure?.message == Self.failure.message)
  }
}
