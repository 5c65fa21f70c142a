import Glibc
import Replication

/// Discovery's own thread: the beacon, the watch over interfaces, and the one table of all that was found.
final class DiscoveryLoop {
  /// A call into the responder's library that takes longer than this hangs.
  static let hangMilliseconds: UInt64 = 2_000
  /// Changes of interfaces come in bursts: so long they are gathered.
  static let settleMilliseconds: UInt64 = 300
  /// What a responder told outlives its restart by this: it finds its peers again within seconds.
  static let agedLifetimeMilliseconds: UInt64 = 60_000
  static let heartbeatMilliseconds: UInt64 = 1_000
  /// Datagrams per turn and socket.
  static let datagramsPerTurn = 64

  private let configuration: DiscoveryConfiguration
  private let mailbox: DiscoveryMailbox
  private let responder: ResponderMailbox?
  private let handler: any DiscoveryHandler
  private var random: FunctionGenerator
  private var table = InstanceTable()
  private var state = DiscoveryState()
  private var toldState: DiscoveryState?
  /// What the responder's thread said last; ``DiscoveryState/responder`` also tells when it hangs.
  private var responderState: ResponderState

  private let sockets: BeaconSockets?
  private let watch: InterfaceWatch?
  private var schedule: BeaconSchedule
  private var admission = BeaconAdmission()
  private var interfaces: [NetworkInterface] = []
  private var interfacesChangedAt: MonotonicTime?
  private var ownNames: [String] = []
  private var now = ElapsedClock.now()

  init(
    _ configuration: DiscoveryConfiguration, _ mailbox: DiscoveryMailbox, _ responder: ResponderMailbox?,
    random: FunctionGenerator, handler: any DiscoveryHandler
  ) {
    (self.configuration, self.mailbox, self.responder) = (configuration, mailbox, responder)
    (self.random, self.handler) = (random, handler)
    sockets = configuration.usesBeacon ? BeaconSockets(port: configuration.beaconPort) : nil
    watch = try? InterfaceWatch()
    schedule = BeaconSchedule(configuration, now: ElapsedClock.now())
    responderState = responder == nil ? .disabled : .unknown
  }

  func run() {
    useInterfaces()
    while !mailbox.isStopped {
      wait()
      now = ElapsedClock.now()
      if let settled = interfacesSettleAt, now >= settled { useInterfaces() }
      for event in mailbox.takeEvents() { note(event) }
      receiveBeacons()
      tell(table.expire(now: now))
      if table.count > 0 { schedule.noteKnown(now: now) }
      noteHang()
      sendBeaconIfDue()
      tellState()
    }
  }

  private func wait() {
    var entries = [mailbox.signal.descriptor, watch?.descriptor ?? -1].map {
      pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
    }
    entries += (sockets?.descriptors ?? []).map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    poll(&entries, nfds_t(entries.count), Int32(clamping: timeout()))
    mailbox.signal.clear()
    if entries[1].revents != 0 {
      watch?.drain()
      interfacesChangedAt = interfacesChangedAt ?? ElapsedClock.now()
    }
  }

  private func timeout() -> UInt64 {
    var wakes = [now.advanced(byMilliseconds: DiscoveryLoop.heartbeatMilliseconds)]
    if let next = table.nextExpiry { wakes.append(next) }
    if let settled = interfacesSettleAt { wakes.append(settled) }
    if sockets != nil { wakes.append(schedule.nextWake(now: now)) }
    return (wakes.min() ?? now).millisecondsSince(now)
  }

  private var interfacesSettleAt: MonotonicTime? {
    interfacesChangedAt?.advanced(byMilliseconds: DiscoveryLoop.settleMilliseconds)
  }

  // MARK: Interfaces

  private func useInterfaces() {
    interfacesChangedAt = nil
    let current = NetworkInterface.all().filter { configuration.beaconInterfaces?.contains($0.name) ?? true }
    let isFirst = interfaces.isEmpty && toldState == nil
    guard current != interfaces else { return }
    interfaces = current
    state.interfaces = current.map(\.name)
    sockets?.join(current)
    schedule.noteInterfacesChanged()
    guard !isFirst else { return }
    responder?.change { $0.isNetworkChanged = true }
    handler.interfacesChanged()
  }

  // MARK: Responder

  private func note(_ event: ResponderEvent) {
    switch event {
    case .available: responderState = .available
    case .absent:
      responderState = .absent
      state.isRegistered = false
      table.age(.responder, expiresAt: now.advanced(byMilliseconds: DiscoveryLoop.agedLifetimeMilliseconds))
    case .registered(let isRegistered): state.isRegistered = isRegistered
    case .seen(let name, let addresses, let tag):
      state.hasHeardMulticast = true
      tell(
        table.see(name, by: .responder, addresses, tag: tag, now: now, expiresAt: nil, using: &random))
    case .lost(let name): tell(table.remove(name, from: .responder, now: now))
    }
  }

  /// A hung daemon shows by a call that does not return.
  private func noteHang() {
    let isHung = responder?.callStartedAt.map { now.millisecondsSince($0) >= DiscoveryLoop.hangMilliseconds } ?? false
    state.responder = isHung ? .hung : responderState
  }

  // MARK: Beacon

  private func receiveBeacons() {
    guard let sockets else { return }
    for descriptor in sockets.descriptors {
      for _ in 0..<DiscoveryLoop.datagramsPerTurn {
        guard let datagram = BeaconSockets.receive(descriptor) else { break }
        guard datagram.isForAll(on: interfaces), datagram.isFromNeighbour(on: interfaces),
          admission.admit(datagram.source.host, now: now), let packet = BeaconPacket(datagram.bytes)
        else { continue }
        noteBeacon(packet.advertisement, from: datagram.source)
      }
    }
  }

  private func noteBeacon(_ advertisement: Advertisement, from source: SocketAddress) {
    let own = mailbox.advertisement?.instance
    if let own, !ownNames.contains(own) { ownNames = [own] + ownNames.prefix(1) }
    guard !ownNames.contains(advertisement.instance) else { return }
    let address = SocketAddress(source.host, port: advertisement.port)
    let outputs = table.seeBeacon(
      advertisement, at: address, now: now, lifetime: configuration.beaconLifetimeMilliseconds, using: &random)
    state.hasHeardMulticast = true
    schedule.noteBeacon(now: now)
    tell(outputs)
  }

  private func sendBeaconIfDue() {
    guard let sockets, let advertisement = mailbox.advertisement else { return }
    let isAnnounced = state.responder == .available && state.isRegistered
    guard schedule.due(isAnnounced: isAnnounced, now: now) else { return }
    sockets.send(BeaconPacket(advertisement).bytes, on: interfaces)
  }

  // MARK: Telling

  private func tell(_ outputs: [InstanceTable.Output]) {
    for output in outputs {
      switch output {
      case .found(let instance, let addresses, let tag):
        handler.found(instance: instance, addresses: addresses, tag: tag)
      case .lost(let instance): handler.lost(instance: instance)
      }
    }
  }

  private func tellState() {
    state.isBeaconing = sockets != nil && schedule.isActive
    state.instances = table.count
    guard state != toldState else { return }
    toldState = state
    mailbox.note(state)
    handler.discoveryChanged(state)
  }
}
