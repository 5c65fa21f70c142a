/// Measured values of one kind.
struct Samples {
  private let ascending: [Double]

  /// At least one value.
  init(_ values: [Double]) {
    precondition(!values.isEmpty, "at least one sample")
    ascending = values.sorted()
  }

  var count: Int { ascending.count }
  var best: Double { ascending[count - 1] }
  var median: Double { percentile(50) }

  /// The smallest value that `percent` of 100 do not exceed.
  func percentile(_ percent: Int) -> Double { ascending[max(0, min(count - 1, (count * percent + 99) / 100 - 1))] }
}

extension Duration {
  var asSeconds: Double { self / .seconds(1) }
  var asMilliseconds: Double { self / .milliseconds(1) }
}
