/// What the core does not bring itself: hashing, signatures, reading a statement, and what the build understands.
package struct Cryptography: Sendable {
  package let hash: HashFunction
  package let verify: @Sendable (_ signature: Signature, _ message: [UInt8], _ key: PublicKey) -> Bool
  /// Signs with this device's key.
  package let sign: @Sendable (_ message: [UInt8]) -> Signature
  /// A keyed hash (HMAC-SHA-256) of a message.
  package let authenticationCode: @Sendable (_ key: [UInt8], _ message: [UInt8]) -> Digest
  /// Decodes a statement and checks its signature.
  package let statement: @Sendable (_ encoded: [UInt8]) -> StatementReading
  /// Decodes one whose signature was checked before.
  package let checkedStatement: @Sendable (_ encoded: [UInt8]) -> Statement?
  /// What a device signs where it says what it holds.
  package let holdingsBytes: @Sendable (Holdings) -> [UInt8]
  package let formats: KnownFormats

  package init(
    hash: @escaping HashFunction,
    verify: @escaping @Sendable (Signature, [UInt8], PublicKey) -> Bool,
    sign: @escaping @Sendable ([UInt8]) -> Signature,
    authenticationCode: @escaping @Sendable ([UInt8], [UInt8]) -> Digest,
    statement: @escaping @Sendable ([UInt8]) -> StatementReading,
    checkedStatement: (@Sendable ([UInt8]) -> Statement?)? = nil,
    holdingsBytes: @escaping @Sendable (Holdings) -> [UInt8], formats: KnownFormats = .all
  ) {
    (self.hash, self.verify, self.sign, self.formats) = (hash, verify, sign, formats)
    (self.authenticationCode, self.holdingsBytes) = (authenticationCode, holdingsBytes)
    self.statement = { encoded in statement(encoded).map(formats.reading) }
    let decoded = checkedStatement ?? { statement($0).statement }
    self.checkedStatement = { encoded in decoded(encoded).map(formats.reading) }
  }
}

/// What bytes are that should be a statement.
package enum StatementReading: Sendable {
  case statement(Statement)
  /// In an envelope of a later version: nothing of it can be read, so it is neither kept nor passed on, and nobody's fault.
  case laterVersion
  /// No statement, or one that its issuer did not sign.
  case broken

  /// The same with what this build makes of the statement.
  func map(_ transform: (Statement) -> Statement) -> StatementReading {
    if case .statement(let statement) = self { .statement(transform(statement)) } else { self }
  }

  package var statement: Statement? { if case .statement(let statement) = self { statement } else { nil } }
}
