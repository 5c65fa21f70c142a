import Replication
import Wire

/// Makes statements about rights out of what somebody wants, and says beforehand what they would do.
///
/// Whether an author may say something is asked of the evaluation itself: drafts are evaluated as if they were signed.
struct RightsOffice {
  private let state: EngineState

  init(_ state: EngineState) { self.state = state }

  /// By the first of the authors whose word would count.
  func plan(_ request: RightsRequest, authors: [StatementAuthor]) throws -> RightsPlan {
    for author in authors {
      let drafts = try drafts(for: request, by: author.key)
      let grown = state.mesh.authority.adding(drafts)
      guard drafts.allSatisfy({ grown.holds($0.id) && ($0.isPart || grown.counts($0.id)) }) else { continue }
      guard state.mesh.ledger.fleetStatementCount + drafts.count <= Statement.countLimit else {
        throw RightsError.tooManyStatements
      }
      return RightsPlan(
        statements: drafts, author: author.key, isNarrowing: lowers(request) || drafts.contains(where: \.isNarrowing),
        falls: try Foresight(state).falls(under: grown), notCarried: StandingList(state).notCarried,
        leavesNoAdmin: grown.standingAdmins.isEmpty && !state.mesh.authority.standingAdmins.isEmpty,
        authority: grown)
    }
    throw isRootsToSay(request) ? RightsError.needsRoot : RightsError.noRightToSign
  }

  /// Whether anything that is granted now is not any more, though it may bound no chain: reading, carrying.
  private func lowers(_ request: RightsRequest) -> Bool {
    guard case .grant(let subject, let level, let pattern) = request else { return false }
    return !state.mesh.authority.openGrants(to: subject, on: pattern, above: level).isEmpty
  }

  private func isRootsToSay(_ request: RightsRequest) -> Bool {
    switch request {
    case .promote: true
    // One admin cannot end itself.
    case .end(let device, _, _): device == state.identity.device && state.mesh.authority.isAdmin(device)
    // What of it only root can give back, who composes it knows.
    case .raise, .grant: false
    }
  }

  /// One after the other behind what the author said last, unsigned: their ids are those of the signed ones.
  private func drafts(for request: RightsRequest, by author: PublicKey) throws -> [Statement] {
    var last = state.mesh.authority.lastStatement(of: author)
    let nobody = Signature(first: .zero, second: .zero)
    let bodies = try RightsComposer(state, author: author).bodies(for: request)
    let parts = StatementParts(talkers: state.mesh.authority.talkers)
    return try bodies.flatMap(parts.split).map { body in
      let unsigned = try StatementCodec.unsigned(
        fleet: state.identity.fleet, issuer: author, after: last, body: body, notes: notes(on: request))
      let draft = try StatementCodec.assemble(
        unsigned: unsigned, signature: nobody, state.identity.cryptography.hash)
      last = Statement.Link(sequence: draft.sequence, id: draft.id)
      return draft
    }
  }

  /// When it was signed, and as what a device was ended, for people.
  private func notes(on request: RightsRequest) -> StatementNotes {
    let time = UInt64(bitPattern: state.clock.wallMilliseconds)
    let bytes = (0..<8).map { UInt8(truncatingIfNeeded: time >> (56 - 8 * UInt64($0))) }
    var notes = StatementNotes([StatementNotes.Entry(key: StatementNotes.Key.issuedAt, content: bytes)])
    if case .end(_, let manner, _) = request, let number = manner.note {
      notes.entries.append(StatementNotes.Entry(key: StatementNotes.Key.endManner, content: [number]))
    }
    return notes
  }
}

extension Statement {
  fileprivate var isPart: Bool {
    switch body {
    case .grant(let grant): grant.listing.more
    case .end(let end): end.listing.more
    case .raise(let raise): raise.listing.more
    default: false
    }
  }

  fileprivate var isNarrowing: Bool {
    switch body {
    case .grant(let grant): !grant.listing.isEmpty
    case .end: true
    default: false
    }
  }
}

extension NodeEngine {
  /// What would be signed for a request, and what it would do. Nothing is.
  package func plan(_ request: RightsRequest, authors: [StatementAuthor]) throws -> RightsPlan {
    try RightsOffice(state).plan(request, authors: authors)
  }

  /// Signs what was planned since the last event. It is stored with the next commit.
  package func carryOut(_ plan: RightsPlan, authors: [StatementAuthor]) throws {
    guard let author = authors.first(where: { $0.key == plan.author }) else { throw RightsError.noRightToSign }
    add(
      try plan.statements.map { draft in
        let unsigned = StatementCodec.signedBytes(of: draft.encoded[...])
        return try StatementCodec.assemble(
          unsigned: unsigned, signature: author.sign(unsigned), state.identity.cryptography.hash)
      })
  }
}
