/// Finds places in an array by hash values: six to twelve bytes a place, where a dictionary would keep the keys once more.
///
/// Whoever asks compares, since only the array knows the keys. Places that are equal to the asker may be many.
struct PlaceTable: Sendable {
  /// A place and one; 0 where there is none.
  private var cells: [UInt32] = []
  private var count = 0

  private func home(_ hash: Int) -> Int { hash & (cells.count - 1) }
  private func after(_ cell: Int) -> Int { (cell + 1) & (cells.count - 1) }

  /// Each place that may be meant, until `isMeant` says so.
  func first(_ hash: Int, where isMeant: (Int) -> Bool) -> Int? {
    guard !cells.isEmpty else { return nil }
    var cell = home(hash)
    while cells[cell] > 0 {
      let place = Int(cells[cell]) - 1
      if isMeant(place) { return place }
      cell = after(cell)
    }
    return nil
  }

  /// `hashOf`: of what lies at a place that is here already.
  mutating func insert(_ place: Int, _ hash: Int, hashOf: (Int) -> Int) {
    if (count + 1) * 4 > cells.count * 3 { resize(to: max(8, cells.count * 2), hashOf) }
    put(place, hash)
    count += 1
  }

  private mutating func put(_ place: Int, _ hash: Int) {
    var cell = home(hash)
    while cells[cell] > 0 { cell = after(cell) }
    cells[cell] = UInt32(place + 1)
  }

  private mutating func resize(to size: Int, _ hashOf: (Int) -> Int) {
    let before = cells
    cells = [UInt32](repeating: 0, count: size)
    for cell in before where cell > 0 { put(Int(cell) - 1, hashOf(Int(cell) - 1)) }
  }

  /// What comes behind moves up, so that no search ends before it has seen all.
  mutating func remove(_ place: Int, _ hash: Int, hashOf: (Int) -> Int) {
    guard var gap = cell(of: place, hash) else { return }
    count -= 1
    var cell = after(gap)
    while cells[cell] > 0 {
      let home = home(hashOf(Int(cells[cell]) - 1))
      let distance = (cell - home) & (cells.count - 1)
      if distance >= (cell - gap) & (cells.count - 1) {
        cells[gap] = cells[cell]
        gap = cell
      }
      cell = after(cell)
    }
    cells[gap] = 0
    if count * 8 < cells.count, cells.count > 64 { resize(to: cells.count / 2, hashOf) }
  }

  /// What lies at one place lies at another now.
  mutating func move(_ place: Int, _ hash: Int, to other: Int) {
    if let cell = cell(of: place, hash) { cells[cell] = UInt32(other + 1) }
  }

  private func cell(of place: Int, _ hash: Int) -> Int? {
    guard !cells.isEmpty else { return nil }
    var cell = home(hash)
    while cells[cell] > 0 {
      if cells[cell] == UInt32(place + 1) { return cell }
      cell = after(cell)
    }
    return nil
  }
}
