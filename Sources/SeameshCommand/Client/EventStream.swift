import Replication
import Wire

/// Hands over each event of a live answer as it comes. Ends with a failure alone: the node's own words for why it goes on no
/// further, or that it stopped. Where nobody reads what is written any more, the process ends.
func followEvents(
  _ target: String, _ context: Context, _ take: @escaping (EventStream.Event) throws(Failure) -> Void
) throws(Failure) {
  var events = EventStream()
  var failure: Failure?
  let request = NodeClient.Request(target: target, headers: ["Accept: text/event-stream"], isTyped: true)
  try context.client.stream(request, isWanted: { !context.terminal.isAbandoned }) { bytes in
    do throws(Failure) {
      for event in events.append(bytes) {
        if event.name == "error" { failure = refusal(event.data) } else { try take(event) }
      }
      return true
    } catch {
      failure = error
      return false
    }
  }
  if let failure { throw failure }
  context.terminal.endIfAbandoned()
  throw Failure(.unreachable, "the node on \(context.directory) stopped; watch again once it runs")
}

/// Nil where the node stops, which the end of the answer says.
private func refusal(_ problem: String) -> Failure? {
  let map = (try? ExtendedJSON.parseMap(Array(problem.utf8))) ?? ValueMap()
  guard map["type"] != .string("urn:seamesh:problem:stopping") else { return nil }
  let status = if case .int(let number)? = map["status"] { Int(clamping: number) } else { 0 }
  // It was well formed when it began.
  return Failure(ExitStatus(httpStatus: status, isTyped: false), shown(map.text("detail")))
}

/// Reads server-sent events (HTML Living Standard §9.2) from bytes as they come.
struct EventStream {
  struct Event: Equatable {
    let name: String
    let id: String?
    let data: String
  }

  private var line: [UInt8] = []
  private var (name, data): (String, [String]) = ("message", [])
  private var id: String?

  mutating func append(_ bytes: some Sequence<UInt8>) -> [Event] {
    var events: [Event] = []
    for byte in bytes {
      guard byte == UInt8(ascii: "\n") else {
        line.append(byte)
        continue
      }
      if line.last == UInt8(ascii: "\r") { line.removeLast() }
      if let event = take(String(decoding: line, as: UTF8.self)) { events.append(event) }
      line.removeAll(keepingCapacity: true)
    }
    return events
  }

  private mutating func take(_ line: String) -> Event? {
    if line.isEmpty {
      defer { (name, data, id) = ("message", [], nil) }
      return data.isEmpty ? nil : Event(name: name, id: id, data: data.joined(separator: "\n"))
    }
    let sides = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    let value = sides.count == 2 ? String(sides[1].hasPrefix(" ") ? sides[1].dropFirst() : sides[1]) : ""
    switch sides[0] {
    case "event": name = value
    case "data": data.append(value)
    case "id": id = value
    default: break
    }
    return nil
  }
}
