/// What a person is told of an error that may be of any kind: its own words, where it has any. Swift would print names of types and
/// cases of any other, which say nothing to whoever reads them.
package func words(of error: any Error) -> String {
  (error as? any CustomStringConvertible)?.description ?? "something failed that should not"
}
