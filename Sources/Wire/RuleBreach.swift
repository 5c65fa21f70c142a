/// An error that is about what somebody else sent, and says which rule that breaks.
package protocol RuleBreach: Error {
  /// As a sentence goes on, and without any number that the sender chooses: by those, one who breaks a rule again and again would
  /// seem to break as many.
  var rule: String { get }
}
