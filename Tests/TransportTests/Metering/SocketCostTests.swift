import Links
import Replication
import Testing

@testable import Transport

@Suite("What packets cost on an interface") struct SocketCostTests {
  private func numbers(_ payload: UInt64, segments: UInt64, _ change: (inout TCPNumbers) -> Void = { _ in })
    -> TCPNumbers
  {
    var numbers = TCPNumbers()
    (numbers.payloadByteCount, numbers.segmentCount, numbers.isEstablished) = (payload, segments, true)
    change(&numbers)
    return numbers
  }

  @Test("each segment has the headers of the link, of IP and of TCP, with timestamps where they are in use")
  func headers() {
    let cost = SocketCost(outerHeaderByteCount: 34, isAccepted: false)
    #expect(cost.byteCount(numbers(1_000, segments: 10)) == 1_000 + 10 * 66 + 16)
    #expect(cost.byteCount(numbers(1_000, segments: 10) { $0.hasTimestamps = false }) == 1_000 + 10 * 54 + 40)
  }

  @Test("who accepts has sent a segment that the kernel does not count")
  func accepted() {
    let cost = SocketCost(outerHeaderByteCount: 34, isAccepted: true)
    #expect(cost.byteCount(numbers(1_000, segments: 10)) == 1_000 + 11 * 66 + 16)
  }

  @Test("of a connection that never came about each SYN counts with its options")
  func neverOpened() {
    let cost = SocketCost(outerHeaderByteCount: 40, isAccepted: false)
    #expect(cost.byteCount(numbers(0, segments: 3) { $0.isEstablished = false }) == 3 * 80)
  }

  @Test("at its end come FIN and its acknowledgement, and what was taken and not sent")
  func end() {
    let cost = SocketCost(outerHeaderByteCount: 34, isAccepted: false)
    #expect(cost.byteCountOfEnd(numbers(1, segments: 1)) == 0)
    let open = numbers(1, segments: 1) { ($0.hasEndToSay, $0.notSentByteCount) = (true, 2_416) }
    #expect(cost.byteCountOfEnd(open) == 2_416 + 4 * 66)
  }

  @Test("IPv6 has headers of 40 bytes, and an interface that is no Ethernet has none of its own")
  func families() {
    let ipv6 = LinkPath(interface: "lo", remote: .ipv6(high: 0, low: 1, scope: 0))
    #expect(SocketCost(ipv6, isAccepted: false).outerHeaderByteCount == 40)
    let ipv4 = LinkPath(interface: "lo", remote: Node.loopback)
    #expect(SocketCost(ipv4, isAccepted: false).outerHeaderByteCount == 20)
    #expect(LinkLayer.headerByteCount(of: "no such interface") == 0)
  }

  @Test("where the kernel tells nothing, what passed the socket is charged with headers as if nothing was lost")
  func estimated() {
    #expect(TCPNumbers(-1) == nil)
    let cost = SocketCost(outerHeaderByteCount: 34, isAccepted: false)
    let estimate = cost.byteCount(TCPNumbers(estimatedFrom: 1_208_000))
    // 1,000 segments with data, 500 without.
    #expect((1_208_000 + 1_500 * 66...1_208_000 + 1_510 * 66).contains(estimate))
  }
}
