import Engine
import Synchronization

/// What became of writes, until the turn that answered them is over.
final class AnswerBook: Sendable {
  typealias Answer = (job: WriteJob, result: Result<ChangeReceipt, RefusedWrite>)
  private let answers = Mutex<[Answer]>([])

  func put(_ job: WriteJob, _ result: Result<ChangeReceipt, RefusedWrite>) {
    answers.withLock { $0.append((job, result)) }
  }

  func take() -> [Answer] {
    answers.withLock { answers in
      defer { answers = [] }
      return answers
    }
  }
}
