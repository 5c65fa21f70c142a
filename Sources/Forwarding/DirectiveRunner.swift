import Replication
import Storage
import Wire

/// Carries out what a ``Forwarder`` asks for, with a node's log and a backend. Belongs to one thread.
package final class DirectiveRunner {
  private let source: any ForwardingSource
  private let backend: any Backend
  private let limits: ForwarderLimits
  private let process: String
  private let pages: PageReader
  private let readBacks: ReadBackReader
  /// Read while the batch before it was on its way.
  private var ahead: (request: Forwarder.LoadRequest, page: Forwarder.Page)?

  /// - Parameter process: tells this process from earlier ones, and from those of copies of this directory.
  package init(source: any ForwardingSource, backend: any Backend, limits: ForwarderLimits, process: String) {
    self.process = process
    (self.source, self.backend, self.limits) = (source, backend, limits)
    pages = PageReader(fleet: source.fleet, hash: source.hash)
    readBacks = ReadBackReader(source: source, backend: backend, limits: limits, process: process)
  }

  /// How it ended; nil where the forwarder waits for no answer.
  ///
  /// - Parameters:
  ///   - memory: of the ledger, as far as something is remembered.
  ///   - next: what will be read once a batch is in, to be read meanwhile.
  package func run(
    _ directive: Forwarder.Directive, _ memory: LedgerMemory?, next: Forwarder.LoadRequest? = nil
  ) -> Forwarder.Event? {
    let read = ahead
    ahead = nil
    do {
      switch directive {
      case .connect:
        try backend.connect()
        return .connected
      case .disconnect:
        backend.disconnect()
        return nil
      case .readLedger:
        pages.forget()
        return .ledgerRead(try ledgerReading(memory))
      case .load(let request):
        if let read, read.request == request { return .loaded(read.page) }
        return .loaded(try page(request))
      case .commit(let batch): return .committed(try commit(batch, next))
      case .readBack(let request): return .readBack(try readBacks.read(request))
      }
    } catch let problem as BackendProblem {
      return .failed(problem)
    } catch {
      return .failed(BackendProblem(unreadableLog: error))
    }
  }
}

extension DirectiveRunner {
  private func ledgerReading(_ memory: LedgerMemory?) throws -> Forwarder.LedgerReading {
    do {
      let reader = LedgerReader(source: source, backend: backend, limits: limits, memory: memory, process: process)
      let reading = try reader.read()
      readBacks.forget()
      return reading
    } catch let problem as BackendProblem where problem.kind == .refused {
      // A copy of the relay that forwards is told where chains end, and comes no further. What this one reads now nobody waits
      // for; that it does not read is told by the next refusal.
      try? readBacks.takeBack()
      throw problem
    }
  }

  private func page(_ request: Forwarder.LoadRequest) throws -> Forwarder.Page {
    var page = try source.read { store in try store.snapshot { try pages.page(request, from: $0) } }
    guard let knowledge = page.knowledge else { return page }
    // Asked behind the reading of the log: what the page knows not to lack, the node does not lack at any later time.
    let leftOut = knowledge.elsewhere.isEmpty ? [] : source.leavesOut(knowledge.elsewhere)
    knowledge.tell(in: &page.batch, leftOut: leftOut, fleet: source.fleet, source.hash)
    page.knowledge = nil
    return page
  }

  private func commit(_ batch: LedgerBatch, _ next: Forwarder.LoadRequest?) throws(BackendProblem) -> AppendOutcome {
    guard let next else { return try backend.append(batch) }
    let reading = ReadingAhead(next, page)
    // Waited for whatever becomes of the batch: a reader belongs to one thread at a time.
    defer { ahead = reading.page().map { (next, $0) } }
    return try backend.append(batch)
  }
}

extension BackendProblem {
  /// Of this node's own.
  init(unreadableLog error: any Error) {
    self.init(.rejected, "the log cannot be read: \(words(of: error))", remedy: "seamesh doctor says more.")
  }
}
