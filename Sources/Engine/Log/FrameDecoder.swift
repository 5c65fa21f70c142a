import Replication
import Wire

/// Frames become messages, and runs are hashed and their signatures checked: all of it beside the engine, on whatever
/// thread has the bytes.
package struct FrameDecoder: Sendable {
  let fleet: FleetID
  let hash: HashFunction
  let formats: KnownFormats
  let verify: @Sendable (Signature, [UInt8], PublicKey) -> Bool

  package enum Decoded: Sendable {
    case message(Message)
    case runs(RunBatch, [ArrivedRun])
    /// A message of a later version that may be skipped.
    case nothing
  }

  /// - Parameter verify: in place of the check of signatures that the cryptography brings.
  package init(
    fleet: FleetID, _ cryptography: Cryptography,
    verify: (@Sendable (Signature, [UInt8], PublicKey) -> Bool)? = nil
  ) {
    (self.fleet, hash, formats) = (fleet, cryptography.hash, cryptography.formats)
    self.verify = verify ?? cryptography.verify
  }

  /// - Parameter authority: statements as they are known to who decodes; the engine may know more, and looks again.
  package func decode(_ frame: [UInt8], under authority: () -> Authority) throws -> Decoded {
    guard let message = try MessageCodec.decode(frame[...], passingOver: formats.messages) else { return .nothing }
    guard case .runs(let batch) = message else { return .message(message) }
    return .runs(batch, try runs(of: batch, under: authority()))
  }

  private func runs(of batch: RunBatch, under authority: Authority) throws(BrokenRun) -> [ArrivedRun] {
    let partition = batch.name.id(fleet: fleet, hash: hash)
    var runs: [ArrivedRun] = []
    runs.reserveCapacity(batch.entries.count)
    for entry in batch.entries {
      do throws(RunError) {
        let run = try RunCodec.decode(entry.encoded, fleet: fleet, partition: partition, formats: formats, hash: hash)
        runs.append(try arrived(run, context: entry.context, in: batch.name, under: authority))
      } catch {
        throw BrokenRun(entry.encoded, in: batch.name, error)
      }
    }
    return runs
  }

  /// Checks the signature where the signer is known; otherwise leaves the signer open for whoever knows more
  /// statements.
  func arrived(
    _ run: DecodedRun, context: ContextForm, in partition: PartitionName, under authority: Authority
  ) throws(RunError) -> ArrivedRun {
    let signer = authority.signer(of: run.chain.replica)
    if let signer { try run.verifySignature(of: signer, verify) }
    let content = RunContent(run, hash: hash)
    let incoming = IncomingRun(
      replica: run.chain.replica, first: run.first, hashBefore: run.hashBefore, contextDigest: run.contextDigest,
      context: context, hashes: run.hashes, facts: run.facts(in: partition, formats), elementDots: content.elementDots,
      signer: signer, encoded: run.encoded, documents: content.documents)
    return ArrivedRun(incoming: incoming, open: signer != nil && content.awaitedPayload == nil ? nil : content)
  }
}

/// A run off the wire, and what the engine needs of it to go on where something is still to be looked at.
package struct ArrivedRun: Sendable {
  package let incoming: IncomingRun
  /// The decoded run, kept where its signer is not known yet or its payload travels apart; nil elsewhere. What was
  /// decoded belongs to another thread's heap, and freeing it from this one costs a backlog time.
  let open: RunContent?

  package var awaitedByteCount: Int { open?.awaitedPayload?.byteCount ?? 0 }
}

extension IncomingRun {
  func with(_ content: RunContent) -> IncomingRun {
    IncomingRun(
      replica: replica, first: first, hashBefore: hashBefore, contextDigest: contextDigest, context: context,
      hashes: hashes, facts: facts, elementDots: content.elementDots, signer: signer, encoded: encoded,
      documents: content.documents)
  }
}

extension DecodedRun {
  /// Empty where every change is an ordinary one.
  func facts(in partition: PartitionName, _ formats: KnownFormats) -> [ChangeFacts] {
    let needsOwner = partition.keyValue?.key == Statement.Rule.Key.allUsers
    guard needsOwner || isUnusual else { return [] }
    let facts = changes.indices.map { index in
      ChangeFacts(
        recognition: recognition(at: index, formats), ownDocument: needsOwner ? ownDocument(at: index) : nil,
        origin: changes[index].header.origin)
    }
    return facts.allSatisfy { $0 == ChangeFacts() } ? [] : facts
  }

  /// True where a change is held rather than counted at once, or issues another again.
  private var isUnusual: Bool {
    contents.contains { if case .held = $0 { true } else { false } } || changes.contains { $0.header.origin != nil }
  }

  private func recognition(at index: Int, _ formats: KnownFormats) -> ChangeFacts.Recognition {
    guard case .held = contents[index] else { return .known }
    return formats.recognition(of: changes[index].header)
  }

  private func ownDocument(at index: Int) -> OwnDocument? {
    let dot = Dot(replica: chain.replica, sequence: changes[index].header.sequence)
    return (try? PayloadDecoder.decodeWrites(changes[index].payload, dot: dot)).flatMap(DocumentRule.ownDocument(of:))
  }
}
