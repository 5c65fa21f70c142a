import Glibc

/// Stands between two nodes on loopback, passes on what they say, and counts it as TCP carries it: TLS included, headers
/// of TCP and IP not. One connection at a time; the caller lends it the thread.
///
/// What an end says is one flight later than the latest that had reached it. Flights that follow upon one another, two of
/// them a round trip, are thus counted whatever the machine's speed; a delay keeps those apart that only look as if they
/// did.
final class CountingRelay {
  /// What crossed in the latest connection.
  struct Count {
    var fromDialer = 0
    var fromListener = 0
    /// The latest flight that reached each end; the dialler's first is number 1.
    var flightsAtDialer = 0
    var flightsAtListener = 0
    /// When a byte came last.
    var lastArrival: ContinuousClock.Instant
    var byteCount: Int { fromDialer + fromListener }
  }

  private struct Piece {
    let due: ContinuousClock.Instant
    let flight: Int
    var bytes: ArraySlice<UInt8>
  }

  /// One end's socket, and what waits to be written to it.
  private struct End {
    let descriptor: Int32
    var waiting: [Piece] = []
    var waitingByteCount = 0
    var isEnded = false
  }

  /// Bytes that may wait for one end: more would only be memory.
  private static let waitingByteLimit = 4 * 1024 * 1024
  private static let pieceByteCount = 256 * 1024

  let address: String
  private(set) var count: Count?
  private let listener: Int32
  private let target: UInt16
  private let delay: Duration
  private var ends: [End] = []
  private var buffer = [UInt8](repeating: 0, count: pieceByteCount)

  /// `delay`: from one end to the other.
  init(to target: String, delay: Duration = .zero) throws(Failure) {
    self.target = UInt16(target.split(separator: ":").last ?? "") ?? 0
    self.delay = delay
    listener = LoopbackSocket.make()
    guard LoopbackSocket.call(bind, listener, port: 0) == 0, listen(listener, 4) == 0 else {
      close(listener)
      throw Failure(.failed, "no port on loopback can be had")
    }
    address = "127.0.0.1:\(LoopbackSocket.port(of: listener))"
  }

  deinit {
    cut()
    close(listener)
  }

  var isConnected: Bool { !ends.isEmpty }

  /// Breaks the connection off. The count stays.
  func cut() {
    for end in ends { close(end.descriptor) }
    ends = []
  }

  /// Passes on what comes, for so long.
  func serve(milliseconds: Int64) {
    let deadline = ContinuousClock.now + .milliseconds(milliseconds)
    while ContinuousClock.now < deadline {
      var interests =
        ends.isEmpty ? [pollfd(fd: listener, events: Int16(POLLIN), revents: 0)] : ends.indices.map(interest)
      guard poll(&interests, nfds_t(interests.count), patience(deadline)) >= 0 else { continue }
      if ends.isEmpty {
        if interests[0].revents != 0 { accept() }
      } else {
        move(interests.map { $0.revents != 0 })
      }
    }
  }

  private func patience(_ deadline: ContinuousClock.Instant) -> Int32 {
    let next = ends.compactMap(\.waiting.first?.due).min().map { min($0, deadline) } ?? deadline
    return max(0, Int32(((next - .now) / .milliseconds(1)).rounded(.up)))
  }

  private func interest(_ index: Int) -> pollfd {
    let (end, other) = (ends[index], ends[1 - index])
    var events: Int32 = 0
    if !end.isEnded, other.waitingByteCount < CountingRelay.waitingByteLimit { events |= POLLIN }
    if let first = end.waiting.first, first.due <= .now { events |= POLLOUT }
    return pollfd(fd: end.descriptor, events: Int16(events), revents: 0)
  }

  private func accept() {
    let dialer = Glibc.accept(listener, nil, nil)
    guard dialer >= 0 else { return }
    let other = LoopbackSocket.make()
    guard LoopbackSocket.call(connect, other, port: target) == 0 else {
      close(dialer)
      close(other)
      return
    }
    for descriptor in [dialer, other] { LoopbackSocket.tune(descriptor) }
    ends = [End(descriptor: dialer), End(descriptor: other)]
    count = Count(lastArrival: .now)
  }

  private func move(_ isReady: [Bool]) {
    for index in ends.indices where isReady[index] {
      read(from: index)
      write(to: index)
    }
    if ends.contains(where: \.isEnded), ends.allSatisfy(\.waiting.isEmpty) { cut() }
  }

  private func read(from index: Int) {
    guard !ends[index].isEnded, ends[1 - index].waitingByteCount < CountingRelay.waitingByteLimit else { return }
    let received = recv(ends[index].descriptor, &buffer, buffer.count, 0)
    if received < 0, errno == EAGAIN || errno == EINTR { return }
    guard received > 0 else {
      ends[index].isEnded = true
      return
    }
    let flight = 1 + ((index == 0 ? count?.flightsAtDialer : count?.flightsAtListener) ?? 0)
    let due = ContinuousClock.now + delay
    ends[1 - index].waiting.append(Piece(due: due, flight: flight, bytes: Array(buffer[..<received])[...]))
    ends[1 - index].waitingByteCount += received
    count?.lastArrival = due
    if index == 0 { count?.fromDialer += received } else { count?.fromListener += received }
  }

  private func write(to index: Int) {
    while let piece = ends[index].waiting.first, piece.due <= .now {
      let sent = piece.bytes.withUnsafeBytes {
        send(ends[index].descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard sent > 0 else {
        guard errno == EAGAIN || errno == EINTR else { return ends[index].isEnded = true }
        return
      }
      ends[index].waitingByteCount -= sent
      if index == 0 { count?.flightsAtDialer = piece.flight } else { count?.flightsAtListener = piece.flight }
      if sent == piece.bytes.count {
        ends[index].waiting.removeFirst()
      } else {
        ends[index].waiting[0].bytes.removeFirst(sent)
      }
    }
  }
}

/// TCP on 127.0.0.1.
private enum LoopbackSocket {
  static func make() -> Int32 { socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0) }

  /// `bind` or `connect`.
  static func call(
    _ function: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32, _ descriptor: Int32, port: UInt16
  ) -> Int32 {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    return withUnsafeBytes(of: &address) { bytes in
      guard let start = bytes.assumingMemoryBound(to: sockaddr.self).baseAddress else { return -1 }
      return function(descriptor, start, socklen_t(bytes.count))
    }
  }

  static func port(of descriptor: Int32) -> UInt16 {
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    _ = withUnsafeMutableBytes(of: &address) { bytes in
      getsockname(descriptor, bytes.assumingMemoryBound(to: sockaddr.self).baseAddress, &length)
    }
    return UInt16(bigEndian: address.sin_port)
  }

  /// Passes on at once, and never blocks.
  static func tune(_ descriptor: Int32) {
    var one: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
    _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
  }
}
