/// A number and what it counts, in the number that goes with it: `1 change is`, `2 changes are`. Without `several` that is `one` with
/// an s.
package func counted(_ count: some BinaryInteger, _ one: String, _ several: String? = nil) -> String {
  "\(count) \(count == 1 ? one : several ?? one + "s")"
}
