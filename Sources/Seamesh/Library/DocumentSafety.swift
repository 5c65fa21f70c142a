import Replication

/// How safe a document is: who holds what it stands on, by their own signed words.
public struct DocumentSafety: Sendable, Equatable {
  /// A device whose word counts and that holds all of it.
  public struct Holder: Sendable, Equatable {
    /// Key of the device, in hexadecimal digits, and what its people call it.
    public let device: String
    public let label: String
    /// Its word is at least so old.
    public let ageMilliseconds: Int64

    init(_ word: ReceiptReport.Word) {
      (device, label, ageMilliseconds) = (word.device, word.label, word.ageMilliseconds)
    }
  }

  /// Other devices.
  public let holders: [Holder]
  /// Of these, members whose role is `relay`.
  public let relays: [Holder]
  /// Who has read it in the backend.
  public let forwarders: [Holder]

  init(_ report: ReceiptReport) {
    holders = report.holders.map(Holder.init)
    relays = report.relays.map(Holder.init)
    forwarders = report.forwarders.map(Holder.init)
  }
}

extension DocumentCollection {
  /// How safe a document is, living or deleted. What was answered to a write is on this device's disk in any case.
  ///
  /// - Parameter asking: has the peers in reach say first what they hold now, which takes up to two seconds.
  public func safety(of id: Document.ID, asking: Bool = false) async throws(NodeError) -> DocumentSafety {
    let (node, partition, name, id) = (node, partition, name, try id.value())
    return try await Blocking.run { () throws(NodeError) in
      DocumentSafety(try node.receipts(partition, name, id: id, asking: asking))
    }
  }
}
