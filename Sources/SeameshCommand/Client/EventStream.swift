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
