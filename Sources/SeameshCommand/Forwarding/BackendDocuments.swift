import Forwarding
import Replication
import Wire

/// One line for each, or with `--json` one object.
func listDeadLetters(_ backend: PostgreSQLBackend, _ context: Context) throws(Failure) {
  let letters: [DeadLetter]
  do throws(BackendProblem) { letters = try backend.deadLetters() } catch { throw Failure(error) }
  for letter in letters {
    let id = Value(canonicalID: letter.place.key.id).map { ExtendedJSON.text($0) } ?? "?"
    let partition = letter.partition ?? "a partition without a name"
    if context.isJSON {
      context.terminal.print(
        ExtendedJSON.object([
          ("partition", .string(Text(partition))), ("collection", .string(letter.place.key.collection)),
          ("id", .string(Text(id))), ("reason", .string(Text(letter.reason))),
        ]))
    } else {
      context.terminal.print(shown("\(partition) \(letter.place.key.collection.string) \(id): \(letter.reason)"))
    }
  }
  if letters.count == DeadLetterTurn.limit {
    context.terminal.warn("there may be more than these \(letters.count); seamesh.documents at the backend has all")
  }
  if letters.isEmpty, !context.isJSON { context.terminal.print("the backend holds all documents that it was sent") }
}

func makeViews(_ backend: PostgreSQLBackend, _ context: Context) throws(Failure) {
  let views: [(view: String, collection: String)]
  do throws(BackendProblem) { views = try backend.makeViews() } catch { throw Failure(error) }
  for (view, collection) in views {
    if context.isJSON {
      context.terminal.print(
        ExtendedJSON.object([("view", .string(Text(view))), ("collection", .string(Text(collection)))]))
    } else {
      context.terminal.print(shown("seamesh_views.\(view): \(collection)"))
    }
  }
}
