import Engine
import Identity
import Replication

/// A device that takes much of what every node has to keep of it.
struct Spender: Sendable {
  let name: String
  let device: String
  let statements: Int
  let statementBytes: Int
  let replicas: Int
  /// Partitions in which nobody else has written.
  let partitions: Int
}

extension NodeEngine {
  /// Devices that have said half of what they may, or begun more partitions than anybody needs.
  func spenders() -> [Spender] {
    let authority = state.mesh.authority
    let words = RightsWords(authority)
    let alone = partitionsWithOneAuthor()
    let allowances = Dictionary(authority.allowances.map { ($0.device, $0) }) { first, _ in first }
    let devices = Set(allowances.keys).union(alone.keys).filter {
      allowances[$0]?.isNearlySpent == true || alone[$0, default: 0] >= Spender.partitionMark
    }
    return devices.sorted().map { device in
      let allowance = allowances[device]
      return Spender(
        name: words.name(of: device), device: DeviceID(device).shortText,
        statements: allowance?.statements ?? 0, statementBytes: allowance?.statementBytes ?? 0,
        replicas: allowance?.replicas ?? 0, partitions: alone[device, default: 0])
    }
  }

  private func partitionsWithOneAuthor() -> [PublicKey: Int] {
    var alone: [PublicKey: Int] = [:]
    for partition in state.mesh.partitions.values {
      let authors = Set(partition.log.received.entries.keys.lazy.map(state.mesh.authority.signer))
      if authors.count == 1, let author = authors.first ?? nil { alone[author, default: 0] += 1 }
    }
    return alone
  }
}

extension Spender {
  /// Partitions of one device alone: each takes a few kilobytes of memory at every node that wants it.
  static let partitionMark = 4_096
}

extension Node {
  static func findings(_ spenders: [Spender]) -> [DoctorFinding] {
    spenders.map { spender in
      DoctorFinding(
        .problem, "allowance-spent",
        "\(spender.name) (device \(spender.device)) has signed \(spender.statements) of \(Allowance.statementLimit) "
          + "statements, \(spender.statementBytes / 1_024) of \(Allowance.byteLimit / 1_024) KiB of them, "
          + "\(spender.replicas) for replica ids, and writes alone in \(spender.partitions) partitions.",
        remedy: "No app does that: look at the device. An admin ends it with seamesh revoke.")
    }
  }

  static func findings(undeletable documents: Set<String>) -> [DoctorFinding] {
    guard !documents.isEmpty else { return [] }
    return [
      DoctorFinding(
        .warning, "document-undeletable",
        "Some change gave documents the last generation there is, so nobody can delete them: "
          + "\(documents.sorted().joined(separator: "; ")).",
        remedy: "Empty the document by an edit. No app gives such generations: look at who may write there.")
    ]
  }

  /// What a member did. Strangers are in the log alone: anybody can send nonsense.
  static func finding(_ entry: ConductBook.Entry) -> DoctorFinding? {
    guard case .device(let device, let user) = entry.source else { return nil }
    let place = entry.place.map {
      ", last in \($0.partition.text.string), change \($0.sequence) of replica \($0.replica.text)"
    }
    let times = entry.count == 1 ? "once" : "\(entry.count) times"
    return DoctorFinding(
      .warning, "rule-broken",
      "Device \(device.shortText) of \(user.string) broke the protocol \(times): \(entry.reason)\(place ?? "").",
      remedy:
        "Nothing of it was taken. If it is no old or changed program there, look at the device; what it passes on may be "
        + "another's.")
  }
}
