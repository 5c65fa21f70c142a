import Replication

extension CBORWriter {
  mutating func holdings(_ items: [HoldingsItem]) {
    message(.holdings, items: 1)
    arrayHeader(items.count)
    for item in items {
      arrayHeader(8)
      text(item.partition.text)
      publicKey(item.subject.device)
      unsigned(item.subject.kind.rawValue)
      unsigned(item.number)
      unsigned(item.base)
      context(item.entries)
      ownLast(item.ownLast)
      signature(item.signature)
    }
  }

  mutating func holdingsQuestion(_ question: HoldingsQuestion) {
    message(.holdingsQuestion, items: 2)
    switch question {
    case .sum(let sum, let isAnswer):
      unsigned(isAnswer ? QuestionStep.sumAnswer.rawValue : QuestionStep.sum.rawValue)
      unsigned(sum)
    case .list(let list):
      unsigned(QuestionStep.list.rawValue)
      arrayHeader(list.count)
      for listed in list {
        arrayHeader(2)
        unsigned(listed.prefix)
        unsigned(listed.sum)
      }
    case .known(let list, let wantsBack):
      unsigned(wantsBack ? QuestionStep.known.rawValue : QuestionStep.knownBack.rawValue)
      known(list)
    case .fresh(let names):
      unsigned(QuestionStep.fresh.rawValue)
      arrayHeader(names.count)
      for name in names { text(name.text) }
    }
  }

  private mutating func known(_ list: [HoldingsQuestion.Known]) {
    arrayHeader(list.count)
    for known in list {
      arrayHeader(2)
      text(known.partition.text)
      arrayHeader(known.numbers.count)
      for (subject, number) in known.numbers.sorted(by: { $0.key < $1.key }) {
        arrayHeader(3)
        publicKey(subject.device)
        unsigned(subject.kind.rawValue)
        unsigned(number)
      }
    }
  }
}

/// What a question asks, as its number.
private enum QuestionStep: UInt64 {
  case sum = 0
  case sumAnswer = 1
  case list = 2
  case known = 3
  case knownBack = 4
  case fresh = 5
}

extension CBORReader {
  /// Items of a kind that is not known are left out.
  mutating func holdings(_ items: Int) throws(CBORError) -> [HoldingsItem] {
    try expect(items, 1)
    return try list(limit: HoldingsItem.limit) { reader throws(CBORError) in try reader.holdingsItem() }
      .compactMap { $0 }
  }

  private mutating func holdingsItem() throws(CBORError) -> HoldingsItem? {
    let start = offset
    try readArrayHeader(count: 8)
    let (name, device, kind) = (try partitionName(), try readPublicKey(), try readUnsigned())
    let (number, base, entries) = (try readOrdinal(), try readUnsigned(), try readContext())
    let (ownLast, signature) = (try readOwnLast(), try readSignature())
    let isWhole = if case .full = entries { true } else { false }
    guard isWhole == (base == 0), base < number else { throw CBORError(.outOfRange, at: start) }
    guard let kind = Holdings.Kind(rawValue: kind) else { return nil }
    return HoldingsItem(
      partition: name, subject: Holdings.Subject(device: device, kind: kind), number: number, base: base,
      entries: entries, ownLast: ownLast, signature: signature)
  }

  mutating func holdingsQuestion(_ items: Int) throws(CBORError) -> HoldingsQuestion {
    try expect(items, 2)
    let start = offset
    guard let step = QuestionStep(rawValue: try readUnsigned()) else { throw CBORError(.outOfRange, at: start) }
    switch step {
    case .sum, .sumAnswer: return .sum(try readUnsigned(), isAnswer: step == .sumAnswer)
    case .list:
      return .list(
        try list(limit: HoldingsQuestion.listLimit) { reader throws(CBORError) in
          try reader.readArrayHeader(count: 2)
          return HoldingsQuestion.Listed(prefix: try reader.readUnsigned(), sum: try reader.readUnsigned())
        })
    case .known, .knownBack: return .known(try knownHoldings(), wantsBack: step == .known)
    case .fresh:
      return .fresh(
        try list(limit: HoldingsQuestion.freshLimit) { reader throws(CBORError) in try reader.partitionName() })
    }
  }

  /// All partitions together name no more numbers than one alone may.
  private mutating func knownHoldings() throws(CBORError) -> [HoldingsQuestion.Known] {
    let start = offset
    var room = HoldingsQuestion.numberLimit
    return try list(limit: HoldingsQuestion.knownLimit) { reader throws(CBORError) in
      try reader.readArrayHeader(count: 2)
      let name = try reader.partitionName()
      var numbers: [Holdings.Subject: UInt64] = [:]
      let count = try reader.readArrayHeader()
      room -= count
      guard room >= 0 else { throw CBORError(.tooLong, at: start) }
      for _ in 0..<count {
        try reader.readArrayHeader(count: 3)
        let (device, kind) = (try reader.readPublicKey(), try reader.readUnsigned())
        let number = try reader.readOrdinal()
        guard let kind = Holdings.Kind(rawValue: kind) else { continue }
        numbers[Holdings.Subject(device: device, kind: kind)] = number
      }
      return HoldingsQuestion.Known(partition: name, numbers: numbers)
    }
  }
}
