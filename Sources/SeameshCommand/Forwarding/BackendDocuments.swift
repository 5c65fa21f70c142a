import Forwarding
import Replication
import Seamesh
import Wire

/// Runs and statements that the backend refuses, as the running node knows them, and documents that it has without their content:
/// one line for each, or with `--json` one object. What the node knows comes first: it is told also where the backend cannot be
/// asked.
func listDeadLetters(
  _ context: Context, connect: () throws(Failure) -> PostgreSQLBackend
) throws(Failure) {
  let refused = listRefused(context)
  let letters = try listDocuments(try connect(), context)
  guard refused ?? 0 == 0, letters == 0, !context.isJSON else { return }
  context.terminal.print(
    "the backend holds all documents that it was sent\(refused == nil ? "" : ", and refuses no changes and no statements")"
  )
}

/// How many; nil where no node runs here that would forward.
private func listRefused(_ context: Context) -> Int? {
  let answer: ValueMap
  do throws(Failure) {
    answer = try context.client.ask(.init(target: "/v1/forwarding/refused")).json()
  } catch {
    context.terminal.warn(
      "no node that forwards runs here: changes and statements that a backend refuses are known to such a one alone")
    return nil
  }
  let (runs, statements) = (answer.list("refused"), answer.list("statements"))
  for run in runs { tell(run, "run", context) { refusedLine(ofRun: $0) } }
  for statement in statements { tell(statement, "statement", context) { refusedLine(ofStatement: $0) } }
  return runs.count + statements.count
}

private func tell(_ refused: ValueMap, _ kind: Text, _ context: Context, _ line: (ValueMap) -> String) {
  guard context.isJSON else { return context.terminal.print(shown(line(refused))) }
  var object = refused
  object["kind"] = .string(kind)
  context.terminal.print(ExtendedJSON.text(.map(object)))
}

private func refusedLine(ofRun run: ValueMap) -> String {
  let partition = run.text("partition").isEmpty ? "a partition without a name" : run.text("partition")
  let (first, last) = (run.number("first"), run.number("last"))
  let what = first == 0 ? "how far it counts" : first == last ? "change \(first)" : "changes \(first) to \(last)"
  return "\(partition) \(run.text("replica")) \(what): \(run.text("reason"))"
}

private func refusedLine(ofStatement statement: ValueMap) -> String {
  let scope = statement.text("room").isEmpty ? "fleet" : statement.text("room")
  return "\(scope) statement \(statement.number("number")) of device \(statement.text("issuer")) "
    + "(\(statement.text("id"))): \(statement.text("reason"))"
}

private func listDocuments(_ backend: PostgreSQLBackend, _ context: Context) throws(Failure) -> Int {
  let letters: [DeadLetter]
  do throws(BackendProblem) { letters = try backend.deadLetters() } catch { throw Failure(error) }
  for letter in letters {
    let id = Value(canonicalID: letter.place.key.id).map { ExtendedJSON.text($0) } ?? "?"
    let partition = letter.partition ?? "a partition without a name"
    if context.isJSON {
      context.terminal.print(
        ExtendedJSON.object([
          ("kind", .string("document")), ("partition", .string(Text(partition))),
          ("collection", .string(letter.place.key.collection)), ("id", .string(Text(id))),
          ("reason", .string(Text(letter.reason))),
        ]))
    } else {
      context.terminal.print(shown("\(partition) \(letter.place.key.collection.string) \(id): \(letter.reason)"))
    }
  }
  if letters.count == DeadLetterTurn.limit {
    context.terminal.warn("there may be more than these \(letters.count); seamesh.documents at the backend has all")
  }
  return letters.count
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
