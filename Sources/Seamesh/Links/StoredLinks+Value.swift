import Links
import Replication

/// The form in which it lies on disk.
extension StoredLinks {
  var value: ValueMap {
    var map = ValueMap()
    if let chosen { map["use"] = .string(Text(chosen.rawValue)) }
    var accounts = ValueMap()
    for (linkClass, account) in self.accounts { accounts[Text(linkClass.rawValue)] = .map(account.value) }
    map["accounts"] = .map(accounts)
    return map
  }

  /// What is not understood is left out: it may be a later build's.
  init(_ map: ValueMap) {
    self.init()
    if case .string(let name)? = map["use"] { chosen = LinkClass(rawValue: name.string) }
    guard case .map(let accounts)? = map["accounts"] else { return }
    for entry in accounts.entries {
      guard let linkClass = LinkClass(rawValue: entry.key.string), case .map(let account) = entry.value else {
        continue
      }
      self.accounts[linkClass] = Account(account)
    }
  }
}

extension StoredLinks.Account {
  fileprivate var value: ValueMap {
    var map = ValueMap()
    (map["day"], map["bytes"]) = (.int(day), .int(Int64(clamping: charged)))
    guard let waiting else { return map }
    var held = ValueMap()
    (held["since"], held["changes"], held["bytes"]) = (
      .int(waiting.since), .int(waiting.changes), .int(waiting.byteCount)
    )
    map["usedUp"] = .map(held)
    return map
  }

  fileprivate init?(_ map: ValueMap) {
    guard case .int(let day)? = map["day"], case .int(let bytes)? = map["bytes"] else { return nil }
    var waiting: LinkWaiting?
    if case .map(let held)? = map["usedUp"], case .int(let since)? = held["since"],
      case .int(let changes)? = held["changes"], case .int(let byteCount)? = held["bytes"]
    {
      waiting = LinkWaiting(since: since, changes: changes, byteCount: byteCount)
    }
    self.init(day: day, charged: UInt64(clamping: bytes), waiting: waiting)
  }
}
