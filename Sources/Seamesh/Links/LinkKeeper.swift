import Dispatch
import Engine
import Glibc
import Identity
import Links
import Replication
import Synchronization
import Transport
import Wire

/// Which links this node's connections run over, and what they have cost: on disk before it is forgotten.
package final class LinkKeeper: LinkMeter {
  private struct Shared {
    var book: LinkBook
    var paths: [SessionID: LinkPath] = [:]
    /// Told whenever something else may pass than before.
    var followers: [@Sendable () -> Void] = []
    /// Of the file, by whoever has not begun yet.
    var isToBeSaved = false
    /// What the log holds, for people.
    var log: (@Sendable () -> (changes: Int64, byteCount: Int64)?)?

    mutating func noteUsedUp(_ classes: [LinkClass], _ moment: LinkBook.Moment) {
      guard !classes.isEmpty, let log = log?() else { return }
      let waiting = LinkWaiting(since: moment.wallMilliseconds, changes: log.changes, byteCount: log.byteCount)
      for linkClass in classes { book.note(waiting, usedUp: linkClass) }
    }
  }

  /// In the data directory: the class that was chosen by command, and today's account.
  static let fileName = "links.state"

  private let shared: Mutex<Shared>
  private let path: String
  private let fleet: FleetID
  private let log: NodeLog
  private let write: Write
  private let disk = DispatchQueue(label: "seamesh links")

  typealias Write = @Sendable (_ path: String, _ content: [UInt8]) throws(FileError) -> Void

  init(
    _ rules: [LinkRule], directory: DataDirectory, fleet: FleetID, log: NodeLog,
    write: @escaping Write = PrivateFile.replace
  ) {
    (path, self.fleet, self.log, self.write) = (directory.file(LinkKeeper.fileName), fleet, log, write)
    let stored = LinkKeeper.load(path, log)
    shared = Mutex(Shared(book: LinkBook(rules: rules, stored: stored)))
  }

  /// - Parameter log: what the log holds, from memory; asked where a link comes to its limit.
  func begin(log: @escaping @Sendable () -> (changes: Int64, byteCount: Int64)?) { shared.withLock { $0.log = log } }

  /// Told from any thread whenever something else may pass than before.
  package func follow(_ tell: @escaping @Sendable () -> Void) { shared.withLock { $0.followers.append(tell) } }

  // MARK: The meter

  package func admits(_ path: LinkPath) -> Bool { allowance(of: path).passage != .nothing }

  package func isMetered(_ path: LinkPath) -> Bool {
    shared.withLock { $0.book.isMetered($0.book.linkClass(of: path)) }
  }

  package func charge(_ byteCount: UInt64, on path: LinkPath) {
    change { book, moment in book.charge(byteCount, on: book.linkClass(of: path), moment) }
  }

  // MARK: Sessions

  func opened(_ session: SessionID, _ path: LinkPath) { shared.withLock { $0.paths[session] = path } }
  func closed(_ session: SessionID) { shared.withLock { _ = $0.paths.removeValue(forKey: session) } }

  /// Nil: nothing may pass.
  func passage(of session: SessionID) -> Passage? {
    let allowance = shared.withLock { shared in
      shared.paths[session].map { shared.book.allowance(shared.book.linkClass(of: $0)) } ?? .free
    }
    switch allowance.passage {
    case .everything: return Passage(nil, isThin: allowance.isThin)
    case .partitions(let patterns): return Passage(patterns.compactMap(pattern), isThin: true)
    case .authority: return .authority
    case .nothing: return nil
    }
  }

  private func pattern(_ text: Text) -> Passage.Pattern? {
    guard text.utf8.last != UInt8(ascii: "*") else {
      return .prefix(Text(String(decoding: text.utf8.dropLast(), as: UTF8.self)))
    }
    return (try? PartitionName(text)).map { .partition($0, $0.id(fleet: fleet, hash: SHA256.hash)) }
  }

  package func allowance(of path: LinkPath) -> LinkAllowance {
    shared.withLock { $0.book.allowance($0.book.linkClass(of: path)) }
  }

  // MARK: Time, and people

  /// A day may be over. Called now and then.
  func look() { change { $0.look($1) } }

  func choose(_ linkClass: LinkClass?) { change { book, _ in book.choose(linkClass) } }

  /// The account to the byte: nothing runs any more.
  func settle() {
    shared.withLock { $0.book.settle() }
    save()
    disk.sync {}
  }

  var book: LinkBook { shared.withLock { $0.book } }

  var paths: [SessionID: LinkPath] { shared.withLock { $0.paths } }

  private func change(_ body: (inout LinkBook, LinkBook.Moment) -> LinkBook.Outcome) {
    let moment = LinkBook.Moment(
      wallMilliseconds: WallClock.milliseconds, now: ElapsedClock.now())
    let (outcome, followers) = shared.withLock { shared in
      let outcome = body(&shared.book, moment)
      // Together with the limit: what is written once that is seen waits.
      shared.noteUsedUp(outcome.usedUp, moment)
      return (outcome, shared.followers)
    }
    if outcome.mustSave || !outcome.usedUp.isEmpty { save() }
    if outcome.hasMovedPassage { for tell in followers { tell() } }
    for linkClass in outcome.usedUp {
      log.notice("a link's bytes of today are used up", ["class": linkClass.rawValue])
    }
  }

  // MARK: The file

  /// On a thread of its own: connections do not wait for the disk. What is written last is what the book says last, and however
  /// slow the disk is, one write waits behind the present one.
  private func save() {
    let isFirst = shared.withLock { shared in
      defer { shared.isToBeSaved = true }
      return !shared.isToBeSaved
    }
    guard isFirst else { return }
    disk.async { [self] in
      let stored = shared.withLock { shared in
        shared.isToBeSaved = false
        return shared.book.stored
      }
      do throws(FileError) {
        try write(path, Array(ExtendedJSON.text(.map(stored.value)).utf8))
      } catch {
        log.error("what links cost is not written down", ["reason": "\(error)"])
      }
    }
  }

  private static func load(_ path: String, _ log: NodeLog) -> StoredLinks {
    guard access(path, F_OK) == 0 else { return StoredLinks() }
    do {
      return try StoredLinks(ExtendedJSON.parseMap(PrivateFile.content(of: path)))
    } catch {
      log.error("what links cost until now cannot be read: today's account begins anew", ["reason": "\(error)"])
      return StoredLinks()
    }
  }
}
