import CLinux
import Glibc
import Kernel
import Replication

/// epoll with a timer of the clock that counts through suspension. Confined to the thread that waits on it.
final class Poller {
  struct Interest: OptionSet {
    let rawValue: UInt8
    static let input = Interest(rawValue: 1)
    static let output = Interest(rawValue: 2)
  }

  struct Event {
    let token: UInt64
    let isReadable: Bool
    let isWritable: Bool
    /// The connection is gone in both directions, or failed.
    let isBroken: Bool
  }

  /// Tokens of the caller start above this.
  static let lastReservedToken: UInt64 = 1
  private static let wakeToken: UInt64 = 0
  private static let timerToken: UInt64 = 1
  /// Enough for one turn of the loop; more are reported by the next.
  private static let eventsPerWait = 128

  private let epoll: Descriptor
  private let timer: Descriptor
  private let signal: WakeSignal
  private var armedFor: MonotonicTime?

  init(waking signal: WakeSignal) throws(SystemError) {
    let epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
    guard epoll >= 0 else { throw SystemError("epoll_create1") }
    self.epoll = Descriptor(epoll)
    let timer = timerfd_create(CLOCK_BOOTTIME, Int32(TFD_NONBLOCK) | Int32(TFD_CLOEXEC))
    guard timer >= 0 else { throw SystemError("timerfd_create") }
    self.timer = Descriptor(timer)
    self.signal = signal
    try add(signal.descriptor, token: Poller.wakeToken, .input)
    try add(timer, token: Poller.timerToken, .input)
  }

  func add(_ descriptor: Int32, token: UInt64, _ interest: Interest) throws(SystemError) {
    var event = Poller.event(token, interest)
    guard epoll_ctl(epoll.number, EPOLL_CTL_ADD, descriptor, &event) == 0 else { throw SystemError("epoll_ctl") }
  }

  func change(_ descriptor: Int32, token: UInt64, _ interest: Interest) {
    var event = Poller.event(token, interest)
    epoll_ctl(epoll.number, EPOLL_CTL_MOD, descriptor, &event)
  }

  func remove(_ descriptor: Int32) { epoll_ctl(epoll.number, EPOLL_CTL_DEL, descriptor, nil) }

  /// The wait ends at this time at the latest (``ElapsedClock``). A later time than the one set before has no effect
  /// until that has passed: a needless wake-up is cheaper than a system call for every frame.
  func wakeAt(_ time: MonotonicTime) {
    if let armedFor, armedFor <= time { return }
    armedFor = time
    var setting = itimerspec()
    setting.it_value.tv_sec = Int(clamping: time.milliseconds / 1_000)
    setting.it_value.tv_nsec = Int(time.milliseconds % 1_000) * 1_000_000 + 1
    timerfd_settime(timer.number, Int32(TFD_TIMER_ABSTIME), &setting, nil)
  }

  /// Answers whether the timer ran out. `block` false only collects what is there.
  func wait(block: Bool, _ handle: (Event) -> Void) -> Bool {
    var timerFired = false
    withUnsafeTemporaryAllocation(of: epoll_event.self, capacity: Poller.eventsPerWait) { events in
      let count = epoll_wait(epoll.number, events.baseAddress, Int32(events.count), block ? -1 : 0)
      guard count > 0 else { return }
      for event in events.prefix(Int(count)) {
        switch event.data.u64 {
        case Poller.wakeToken: signal.clear()
        case Poller.timerToken:
          timerFired = true
          clearTimer()
        default: handle(Poller.event(event))
        }
      }
    }
    return timerFired
  }

  private func clearTimer() {
    armedFor = nil
    var expirations: UInt64 = 0
    read(timer.number, &expirations, MemoryLayout<UInt64>.size)
  }

  private static func event(_ token: UInt64, _ interest: Interest) -> epoll_event {
    var events: UInt32 = 0
    if interest.contains(.input) { events |= EPOLLIN.rawValue }
    if interest.contains(.output) { events |= EPOLLOUT.rawValue }
    return epoll_event(events: events, data: epoll_data_t(u64: token))
  }

  private static func event(_ raw: epoll_event) -> Event {
    Event(
      token: raw.data.u64, isReadable: raw.events & EPOLLIN.rawValue != 0,
      isWritable: raw.events & EPOLLOUT.rawValue != 0,
      isBroken: raw.events & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0)
  }
}
