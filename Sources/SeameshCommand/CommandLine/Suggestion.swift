/// The candidate that a mistyped word most likely meant: at most a third of its letters are wrong (two in short words).
func nearest(_ word: String, _ candidates: [String]) -> String? {
  let distances = candidates.map { (name: $0, distance: editDistance(Array(word.utf8), Array($0.utf8))) }
  guard let best = distances.min(by: { $0.distance < $1.distance }) else { return nil }
  return best.distance <= max(2, best.name.utf8.count / 3) && best.distance < best.name.utf8.count ? best.name : nil
}

/// Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment).
func editDistance(_ a: [UInt8], _ b: [UInt8]) -> Int {
  // A word from the command line may be of any length; what is so long resembles nothing.
  let limit = 64
  guard a.count <= limit, b.count <= limit else { return max(a.count, b.count) }
  var beforePrevious: [Int] = []
  var previous = Array(0...b.count)
  for i in 0..<a.count {
    var current = [i + 1]
    for j in 0..<b.count {
      var best = min(previous[j + 1] + 1, current[j] + 1, previous[j] + (a[i] == b[j] ? 0 : 1))
      if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { best = min(best, beforePrevious[j - 1] + 1) }
      current.append(best)
    }
    (beforePrevious, previous) = (previous, current)
  }
  return previous[b.count]
}
