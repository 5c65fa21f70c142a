import Replication

/// Messages as deterministic CBOR: an array whose first item is the message's number. `Docs/PROTOCOL.md`, "Messages".
package enum MessageCodec {
  package enum Number: UInt64, CaseIterable, Sendable {
    case hello = 0
    case joinRequest = 1
    case joinAccepted = 2
    case joinRefused = 3
    case statementSet = 4
    case statements = 5
    case statementsComplete = 6
    case interestRequest = 7
    case interest = 8
    case interestChange = 9
    case summary = 10
    case vectors = 11
    case pull = 12
    case runs = 13
    case payloadPiece = 14
    case have = 15
    case chainProbe = 16
    case ping = 17
    case pong = 18
    case goodbye = 19
    case credentialRequest = 20
    case credentials = 21
    case holdings = 22
    case holdingsQuestion = 23
    case spent = 64
    case neighbours = 65
    case pushChoice = 66
  }

  /// The message numbers from 64 on may be skipped by who does not know them; those below may not.
  package static let firstOptionalNumber: UInt64 = 64

  package static func encode(_ message: Message) -> [UInt8] {
    var out = CBORWriter(reserving: 256)
    switch message {
    case .hello(let hello): out.hello(hello)
    case .joinRequest(let request): out.joinRequest(request)
    case .joinAccepted(let acceptance): out.joinAccepted(acceptance)
    case .joinRefused(let refusal): out.joinRefused(refusal)
    case .credentialRequest(let proof):
      out.message(.credentialRequest, items: 1)
      out.digest(proof)
    case .credentials(let credentials):
      out.message(.credentials, items: 1)
      out.byteStrings(credentials)
    case .statementSet(let set): out.statementSet(set)
    case .statements(let statements, let scope):
      out.message(.statements, items: 2)
      out.text(scope)
      out.byteStrings(statements)
    case .statementsComplete(let scope):
      out.message(.statementsComplete, items: 1)
      out.text(scope)
    case .interestRequest: out.message(.interestRequest, items: 0)
    case .interest(let interest):
      out.message(.interest, items: 2)
      out.interest(interest)
    case .interestChange(let added, let removed):
      out.message(.interestChange, items: 4)
      out.interest(added)
      out.interest(removed)
    case .summary(let summary): out.summary(summary)
    case .vectors(let vectors):
      out.message(.vectors, items: 1)
      out.arrayHeader(vectors.count)
      for vector in vectors { out.partitionVector(vector) }
    case .pull(let stream, let vector):
      out.message(.pull, items: vector.base == nil ? 2 : 3)
      out.unsigned(stream)
      out.partitionVector(vector)
      if let base = vector.base { out.unsigned(base) }
    case .runs(let batch): out.runs(batch)
    case .payloadPiece(let piece): out.payloadPiece(piece)
    case .have(let vector):
      out.message(.have, items: 1)
      out.partitionVector(vector)
    case .chainProbe(let probe): out.chainProbe(probe)
    case .ping(let nonce):
      out.message(.ping, items: 1)
      out.unsigned(nonce)
    case .pong(let nonce):
      out.message(.pong, items: 1)
      out.unsigned(nonce)
    case .goodbye(let reason):
      out.message(.goodbye, items: 1)
      out.unsigned(reason.rawValue)
    case .holdings(.records(let items)): out.holdings(items)
    case .holdings(.question(let question)): out.holdingsQuestion(question)
    case .spent(let devices): out.spent(devices)
    case .neighbours(let news): out.neighbours(news)
    case .pushChoice(let choice): out.pushChoice(choice)
    }
    return out.bytes
  }

  /// What a frame says it is, with nothing else of it read; nil for what this version does not know.
  package static func number(of frame: ArraySlice<UInt8>) -> Number? {
    var reader = CBORReader(frame)
    guard (try? reader.readArrayHeader()) != nil, let number = try? reader.readUnsigned() else { return nil }
    return Number(rawValue: number)
  }

  /// Nil for a message that this version does not know and may skip, or one of those to be looked at no further.
  package static func decode(
    _ frame: ArraySlice<UInt8>, passingOver passed: Set<UInt64> = []
  ) throws(CBORError) -> Message? {
    var reader = CBORReader(frame)
    let items = try reader.readArrayHeader()
    let start = reader.offset
    let number = try reader.readUnsigned()
    let kind = Number(rawValue: number)
    if kind == nil && number >= firstOptionalNumber || passed.contains(number) { return nil }
    guard items > 0, let kind else { throw CBORError(.unexpectedType, at: start) }
    let message = try reader.message(kind, items: items - 1)
    try reader.finish()
    return message
  }
}
