/// What a build understands of what others may send it. The rest it keeps, passes on and does not count.
///
/// A node's is ``all``. Tests alone hand in another: one that lacks something, as an earlier build does, or knows what
/// has no meaning yet, as a later one will.
package struct KnownFormats: Hashable, Sendable {
  package var statementKinds = Set(Statement.Kind.allCases)
  /// Whom grants may be for; for others the shape of a grant is not known.
  package var grantSubjects = Set(Subject.allCases)
  /// Beside the plain one: names under which a plain payload is written as it is.
  package var codecs: Set<PayloadCodec> = []
  /// Beside those that every build knows; what has them counts like any other.
  package var criticalExtensions: Set<UInt16> = []
  /// Numbers below 64 of messages that are read, and looked at no further.
  package var messages: Set<UInt64> = []
  /// What hellos announce.
  package var features: UInt64 =
    Feature.holdings | Feature.holdingsQuestions | Feature.neighbours | Feature.differences | Feature.pushChoice
  /// Numbers of messages that are said beside what there is to say (`LaterNews`); none of them means anything.
  package var news: [UInt64] = []
  /// How own changes are written, one after the other; as ever where it is empty.
  package var written: [WrittenForm] = []

  package static let all = KnownFormats()

  /// Bits of ``Hello/features``: what the sender takes.
  package enum Feature {
    package static let holdings: UInt64 = 1 << 2
    package static let holdingsQuestions: UInt64 = 1 << 3
    /// ``Message/neighbours(_:)``, and runs ahead of what they stand on where somebody else brings that.
    package static let neighbours: UInt64 = 1 << 44
    /// A pull that says how its vector differs from what its receiver told, and streams whose first context says how it
    /// differs from the pull's vector.
    package static let differences: UInt64 = 1 << 45
    /// ``Message/pushChoice(_:)``, where both have ``neighbours``, too.
    package static let pushChoice: UInt64 = 1 << 46
  }

  package enum Subject: UInt8, Sendable, CaseIterable { case device, user, role, everyone }

  package struct WrittenForm: Hashable, Sendable {
    package let codec: PayloadCodec
    package let extensions: [ChangeExtension]
    package init(codec: PayloadCodec = .plain, extensions: [ChangeExtension] = []) {
      (self.codec, self.extensions) = (codec, extensions)
    }
  }

  package init() {}

  /// To be raised where a build learns a shape of what it knew already.
  private static let revision: UInt8 = 1

  /// Tells stores that were judged with another understanding. What is written and announced is no part of it.
  package var understanding: [UInt8] {
    var bytes = [KnownFormats.revision]
    func append(_ list: [UInt64]) {
      appendBigEndian(UInt64(list.count), to: &bytes)
      for number in list.sorted() { appendBigEndian(number, to: &bytes) }
    }
    append(statementKinds.map { UInt64($0.rawValue) })
    append(grantSubjects.map { UInt64($0.rawValue) })
    append(codecs.map { UInt64($0.rawValue) })
    append(criticalExtensions.map { UInt64($0) })
    return bytes
  }
}

extension KnownFormats {
  /// Why a change cannot count here, if it is not understood (rule C4).
  package func recognition(of header: ChangeHeader) -> ChangeFacts.Recognition {
    guard header.codec == .plain || codecs.contains(header.codec) else { return .unknownCodec }
    let isKnown = header.extensions.allSatisfy { !$0.isUnknownAndCritical || criticalExtensions.contains($0.type) }
    return isKnown ? .known : .unknownExtension
  }

  package func form(of sequence: UInt64) -> WrittenForm {
    written.isEmpty ? WrittenForm() : written[Int(sequence % UInt64(written.count))]
  }

  /// The statement as this build reads it (rule C27).
  package func reading(_ statement: Statement) -> Statement {
    guard self != .all, let unknown = unknown(statement.body) else { return statement }
    return Statement(
      fleet: statement.fleet, issuer: statement.issuer, sequence: statement.sequence, previous: statement.previous,
      scope: statement.scope, body: .unknown(unknown), signature: statement.signature, id: statement.id,
      encoded: statement.encoded)
  }

  /// Nil where it is known. Of a known kind in a shape that is not known the beginning is read.
  private func unknown(_ body: Statement.Body) -> Statement.Unknown? {
    guard let kind = Statement.Kind(rawValue: body.kind) else { return nil }
    guard statementKinds.contains(kind) else { return Statement.Unknown(kind: kind.rawValue) }
    guard case .grant(let grant) = body, !grantSubjects.contains(Subject(grant.subject)) else { return nil }
    return Statement.Unknown(kind: kind.rawValue, tips: grant.listing.tips)
  }
}

extension KnownFormats.Subject {
  fileprivate init(_ subject: Statement.Subject) {
    self =
      switch subject {
      case .device: .device
      case .user: .user
      case .role: .role
      case .everyone: .everyone
      }
  }
}
