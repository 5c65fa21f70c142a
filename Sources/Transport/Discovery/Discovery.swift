import Kernel
import Replication

/// Finds peers on the network: by multicast DNS through this machine's responder, and by a small beacon where there is
/// none or it hears nobody (design §8). Whatever the responder does (absent, restarted, hung, dying), the callers never
/// wait for it.
///
/// Two threads: one for the beacon and the handler, one that calls the responder's library, which may block for long.
package final class Discovery: Sendable {
  /// The responder's thread may hang in a call for 25 s; it then ends by itself, holding nothing of ours but its mailbox.
  private static let stopTimeoutMilliseconds: UInt64 = 1_000

  private let mailbox: DiscoveryMailbox
  private let responder: ResponderMailbox?
  private let threads: [DedicatedThread]

  /// `advertisement` nil: listens without saying anything. `random` may be called from several threads. The handler is
  /// kept alive until ``stop()``.
  package init(
    _ configuration: DiscoveryConfiguration = DiscoveryConfiguration(), advertisement: Advertisement?,
    handler: any DiscoveryHandler, random: @escaping @Sendable () -> UInt64
  ) throws(SystemError) {
    let mailbox = try DiscoveryMailbox(advertisement)
    let responder = configuration.usesResponder ? try ResponderMailbox(advertisement) : nil
    let generator = FunctionGenerator(random)
    var threads = [
      try DedicatedThread.start("seamesh search") {
        DiscoveryLoop(configuration, mailbox, responder, random: generator, handler: handler).run()
      }
    ]
    if let responder {
      threads.append(
        try DedicatedThread.start("seamesh mdns") {
          ResponderLoop(
            responder, resolveIntervalMilliseconds: configuration.resolveIntervalMilliseconds, random: generator,
            emit: { mailbox.post($0) }
          ).run()
        })
    }
    (self.mailbox, self.responder, self.threads) = (mailbox, responder, threads)
  }

  deinit { signalStop() }

  /// Announces this from now on: a new random name once a day, or nothing.
  package func advertise(_ advertisement: Advertisement?) {
    mailbox.advertise(advertisement)
    responder?.change { $0.advertisement = advertisement }
  }

  /// Instances whose peers are connected: their names are resolved anew only rarely.
  package func settle(_ instances: Set<String>) { responder?.change { $0.settled = instances } }

  package var state: DiscoveryState { mailbox.discoveryState }

  /// Withdraws the announcement; no call of the handler begins after this returns. Not to be called by the handler.
  package func stop() {
    signalStop()
    for thread in threads { _ = thread.wait(milliseconds: Discovery.stopTimeoutMilliseconds) }
  }

  private func signalStop() {
    mailbox.stop()
    responder?.change { $0.isStopped = true }
  }
}
