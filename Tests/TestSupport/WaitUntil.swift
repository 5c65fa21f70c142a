import Glibc

/// Waits until `condition` holds, looking again every millisecond; answers whether it came to hold within the time. For
/// what no event tells of: where a test can be told, it waits for that instead.
package func waitUntil(within seconds: Double = 20, _ condition: () throws -> Bool) rethrows -> Bool {
  let deadline = ContinuousClock.now + .seconds(seconds)
  while try !condition() {
    guard ContinuousClock.now < deadline else { return try condition() }
    _ = poll(nil, 0, 1)
  }
  return true
}
