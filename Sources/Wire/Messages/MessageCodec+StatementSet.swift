import Replication

/// Steps of an exchange of statements, as they are numbered on the wire.
private enum StatementStep: UInt64 {
  case buckets = 0
  case tips = 1
  case wanted = 2
}

extension CBORWriter {
  mutating func statementSet(_ set: StatementSet) {
    func begin(_ step: StatementStep, items: Int) {
      message(.statementSet, items: items + 2)
      text(set.scope)
      unsigned(step.rawValue)
    }
    switch set.step {
    case .buckets(let buckets):
      begin(.buckets, items: 1)
      words(buckets)
    case .tips(let listed, let tips):
      begin(.tips, items: 2)
      words([listed])
      issuers(tips)
    case .wanted(let tips):
      begin(.wanted, items: 1)
      issuers(tips)
    }
  }

  private mutating func issuers(_ list: [IssuerTips]) {
    arrayHeader(list.count)
    for item in list {
      arrayHeader(2)
      publicKey(item.issuer)
      arrayHeader(item.tips.count)
      for tip in item.tips {
        arrayHeader(2)
        unsigned(tip.sequence)
        self.tip(tip.id)
      }
    }
  }
}

extension CBORReader {
  mutating func statementSet(_ items: Int) throws(CBORError) -> StatementSet {
    let start = offset
    guard items >= 2 else { throw CBORError(.unexpectedType, at: start) }
    let scope = try scope()
    switch StatementStep(rawValue: try readUnsigned()) {
    case .buckets:
      try expect(items, 3)
      return StatementSet(scope: scope, .buckets(try words(StatementSet.bucketCount)))
    case .tips:
      try expect(items, 4)
      let listed = try words(1)[0]
      return StatementSet(scope: scope, .tips(listed: listed, try issuers()))
    case .wanted:
      try expect(items, 3)
      return StatementSet(scope: scope, .wanted(try issuers()))
    case nil: throw CBORError(.unexpectedType, at: start)
    }
  }

  private mutating func issuers() throws(CBORError) -> [IssuerTips] {
    var room = StatementSet.entryLimit
    var last: PublicKey?
    return try list(limit: StatementSet.entryLimit) { reader throws(CBORError) in
      let start = reader.offset
      try reader.readArrayHeader(count: 2)
      let issuer = try reader.readPublicKey()
      guard last.map({ $0 < issuer }) ?? true else { throw CBORError(.keyOrder, at: start) }
      last = issuer
      room -= 1
      let tips = try reader.tips(limit: max(0, room))
      room -= tips.count
      return IssuerTips(issuer: issuer, tips: tips)
    }
  }

  private mutating func tips(limit: Int) throws(CBORError) -> [StatementTip] {
    try list(limit: limit) { reader throws(CBORError) in
      try reader.readArrayHeader(count: 2)
      return StatementTip(sequence: try reader.readUnsigned(), id: try reader.readTip())
    }
  }
}
