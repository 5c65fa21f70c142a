import Engine
import Replication

// Asking what others hold.
extension World {
  /// Between two questions to everybody at the end.
  static let askInterval: UInt64 = 3_000

  func askForHoldings(_ process: NodeProcess) {
    let names = partitions
    count(.askedForHoldings)
    process.put(.call { $0.askForHoldings(of: names) })
  }

  /// When all agree, everyone asks. False where that is over.
  func beginAsking() -> Bool {
    guard askedAt == nil else { return false }
    (agreedSince, quietSince, isPrompt) = (nil, clock, false)
    askEveryone()
    return true
  }

  /// What is answered seldom is asked again.
  func askAgain() {
    guard let askedAt, clock >= askedAt + World.askInterval, oracle.agreement.disagreementInAnswers() != nil else {
      return
    }
    askEveryone()
  }

  private func askEveryone() {
    askedAt = clock
    for process in nodes.compactMap(\.process) { askForHoldings(process) }
  }
}
