import Replication
import Testing

@testable import Wire

@Suite("Words of errors") struct PayloadErrorWordsTests {
  @Test(
    "what is wrong with a payload is said in words, with its limit",
    arguments: [
      .encoding(.tooLong), .tooLong(byteCount: 9, limit: 8), .documentCount(9, limit: 8), .operationCount(limit: 8),
      .collectionLength(9, limit: 8), .idType, .idLength(limit: 8), .documentOrder, .documentKind, .generation,
      .operations, .operationKind, .operationShape, .pathForm, .path, .positionLength(limit: 8), .element, .pathEnd,
      .mapValue, .increment, .operationOrder, .pathTwice, .pathAbove,
    ] as [PayloadError.Reason])
  func payload(_ reason: PayloadError.Reason) {
    let error = PayloadError(reason, at: 77)
    let sentence = words(of: error)
    #expect(sentence == "\(error)" && sentence.contains(" "))
    for internals in ["Payload", "Reason", "reason", "offset", "77", "(", ":"] {
      #expect(!sentence.contains(internals), "\(sentence)")
    }
    if "\(reason)".contains("limit: 8") { #expect(sentence.contains("8")) }
  }

  @Test("an error without words is told without what Swift would print")
  func unforeseen() {
    struct Unforeseen: Error { let secret = 7 }
    #expect(words(of: Unforeseen()) == "something failed that should not")
  }
}
