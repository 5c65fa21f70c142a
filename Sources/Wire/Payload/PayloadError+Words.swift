/// What is wrong, as it goes on behind what it is wrong with.
extension PayloadError: CustomStringConvertible {
  package var description: String {
    switch reason {
    case .encoding: "its bytes are not in their one form"
    case .tooLong(let count, let limit): "it has \(count) bytes; the limit is \(limit)"
    case .documentCount(let count, let limit): "it writes \(count) documents; the limit is \(limit)"
    case .operationCount(let limit): "it has more than \(limit) operations"
    case .collectionLength(let count, let limit):
      "the name of a collection has \(count) bytes; from 1 to \(limit) may be"
    case .idType: "an id is of a kind that no id may be"
    case .idLength(let limit): "an id has more than \(limit) bytes"
    case .documentOrder: "its documents do not stand in their order, or one stands twice"
    case .documentKind, .generation, .operations, .operationKind, .operationShape, .operationOrder, .pathTwice,
      .pathAbove:
      "it says what no change may say of a document"
    case .pathForm, .path, .pathEnd: "a field lies where none may lie, as in the id or more than 64 levels deep"
    case .positionLength(let limit): "a place in a list has more than \(limit) bytes"
    case .element: "it names an element of a list that its author had not seen"
    case .mapValue, .increment: "a value is of a kind that may not stand there"
    }
  }
}
