import Replication
import Wire

extension Context {
  /// Where the node finds nothing, and holds no partition of this name either, that is what a person is told: the name may be
  /// mistyped.
  func ask(_ request: NodeClient.Request, about partition: String) throws(Failure) -> Answer {
    let client = try client
    do throws(Failure) {
      return try client.ask(request)
    } catch  where error.status == .notFound {
      // Why the node cannot say what it holds is not what was asked.
      throw Failure(.notFound, (try? client.lack(of: partition)) ?? error.message)
    }
  }

  /// A word where an empty answer may come of a mistyped name.
  func warnIfLacking(_ partition: String) throws(Failure) {
    if let sentence = try client.lack(of: partition) { terminal.warn(sentence) }
  }
}

extension NodeClient {
  /// Nil where the node holds the partition, or waits for it.
  fileprivate func lack(of partition: String) throws(Failure) -> String? {
    let held = try ask(.init(target: "/v1/partitions?digests=false")).json().list("partitions").map { $0.text("name") }
    guard !held.contains(where: { $0.utf8.elementsEqual(partition.utf8) }) else { return nil }
    let hint = nearest(partition, held).map { "did you mean \(shown($0))?" } ?? "seamesh partitions shows what it holds"
    return "this node holds nothing of \(shown(partition)); \(hint)"
  }
}
