/// Which items of an old list are which of a new one (M15).
struct Alignment {
  /// Above this many comparisons nothing but the equal ends is paired.
  private static let cellLimit = 1_000_000
  private static let equality = 1 << 32
  private static let sameKey = 1 << 16

  /// Index in the old list and in the new, both ascending.
  let pairs: [(old: Int, new: Int)]

  init(_ old: [Value], _ new: [Value], key: Text?) {
    let shorter = min(old.count, new.count)
    let head = (0..<shorter).first { old[$0] != new[$0] } ?? shorter
    let tail =
      (0..<shorter - head).first { old[old.count - 1 - $0] != new[new.count - 1 - $0] } ?? shorter - head
    let middle = Alignment.best(old[head..<old.count - tail], new[head..<new.count - tail], key: key)
    pairs =
      (0..<head).map { ($0, $0) } + middle
      + (0..<tail).reversed().map { (old.count - 1 - $0, new.count - 1 - $0) }
  }

  /// The pairing in order with the greatest total likeness; of equal ones the pair, then skipping the old item, is
  /// preferred.
  private static func best(_ old: ArraySlice<Value>, _ new: ArraySlice<Value>, key: Text?) -> [(old: Int, new: Int)] {
    let width = new.count
    guard !old.isEmpty, width > 0, old.count <= cellLimit / width else { return [] }
    let likeness = old.flatMap { a in new.map { b in Alignment.likeness(a, b, key: key) } }
    // `total[i, j]`: the greatest total of old items from i and new items from j on.
    var total = [Int](repeating: 0, count: (old.count + 1) * (width + 1))
    func at(_ i: Int, _ j: Int) -> Int { i * (width + 1) + j }
    for i in (0..<old.count).reversed() {
      for j in (0..<width).reversed() {
        let like = likeness[i * width + j]
        let paired = like == 0 ? 0 : like + total[at(i + 1, j + 1)]
        total[at(i, j)] = max(total[at(i + 1, j)], total[at(i, j + 1)], paired)
      }
    }
    var (pairs, i, j): ([(old: Int, new: Int)], Int, Int) = ([], 0, 0)
    while i < old.count, j < width {
      let like = likeness[i * width + j]
      if like > 0, total[at(i, j)] == like + total[at(i + 1, j + 1)] {
        pairs.append((old.startIndex + i, new.startIndex + j))
        (i, j) = (i + 1, j + 1)
      } else if total[at(i, j)] == total[at(i + 1, j)] {
        i += 1
      } else {
        j += 1
      }
    }
    return pairs
  }

  /// 0: not the same element.
  private static func likeness(_ a: Value, _ b: Value, key: Text?) -> Int {
    if a == b { return equality }
    guard case .map(let a) = a, case .map(let b) = b else { return 0 }
    if let key {
      guard let identity = a[key], identity == b[key] else { return 0 }
      return sameKey + common(a, b).fields
    }
    let common = common(a, b)
    return 2 * common.fields >= a.count + b.count - common.keys ? common.fields : 0
  }

  /// How many keys two maps share, and how many of them with equal values.
  private static func common(_ a: ValueMap, _ b: ValueMap) -> (keys: Int, fields: Int) {
    var (keys, fields, i, j) = (0, 0, 0, 0)
    while i < a.count, j < b.count {
      switch a.entries[i].key.order(b.entries[j].key) {
      case .before: i += 1
      case .after: j += 1
      case .same:
        keys += 1
        if a.entries[i].value == b.entries[j].value { fields += 1 }
        (i, j) = (i + 1, j + 1)
      }
    }
    return (keys, fields)
  }
}
