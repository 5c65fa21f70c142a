import Replication
import Storage

/// Carries out what a ``Forwarder`` asks for, with a node's log and a backend. Belongs to one thread.
package final class DirectiveRunner {
  private let source: any ForwardingSource
  private let backend: any Backend
  private let limits: ForwarderLimits
  private let process: String
  private let pages: PageReader
  private let readBacks: ReadBackReader

  /// - Parameter process: tells this process from earlier ones, and from those of copies of this directory.
  package init(source: any ForwardingSource, backend: any Backend, limits: ForwarderLimits, process: String) {
    self.process = process
    (self.source, self.backend, self.limits) = (source, backend, limits)
    pages = PageReader(fleet: source.fleet, hash: source.hash)
    readBacks = ReadBackReader(source: source, backend: backend, limits: limits, process: process)
  }

  /// How it ended; nil where the forwarder waits for no answer.
  ///
  /// - Parameter memory: of the ledger, as far as something is remembered.
  package func run(_ directive: Forwarder.Directive, _ memory: LedgerMemory?) -> Forwarder.Event? {
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
        readBacks.forget()
        let reader = LedgerReader(source: source, backend: backend, limits: limits, memory: memory, process: process)
        return .ledgerRead(try reader.read())
      case .load(let request):
        return .loaded(try source.read { store in try store.snapshot { try pages.page(request, from: $0) } })
      case .commit(let batch): return .committed(try backend.append(batch))
      case .readBack(let request): return .readBack(try readBacks.read(request))
      }
    } catch let problem as BackendProblem {
      return .failed(problem)
    } catch {
      return .failed(BackendProblem(unreadableLog: error))
    }
  }
}

extension BackendProblem {
  /// Of this node's own.
  init(unreadableLog error: any Error) {
    self.init(.rejected, "the log cannot be read: \(error)", remedy: "seamesh doctor says more.")
  }
}
