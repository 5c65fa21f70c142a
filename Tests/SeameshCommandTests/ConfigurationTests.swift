import Testing

@testable import SeameshCommand

@Suite("The configuration file")
struct ConfigurationTests {
  private let verb = Verb(
    "go", "go",
    options: [
      OptionSpecification("listen", .text("PORT"), "", configurable: true),
      OptionSpecification("peer", .text("PEER"), "", repeats: true, configurable: true),
      OptionSpecification("relay", .none, "", configurable: true), OptionSpecification("filter", .text("JSON"), ""),
    ], examples: []
  ) { _, _ throws(Failure) in }

  private func read(_ text: String) throws(Failure) -> [String: [String]] {
    try ConfigurationFile(Array(text.utf8), path: "f.json", verbs: [verb]).options(of: verb)
  }

  @Test("members are options by their names, a list where an option repeats")
  func members() throws {
    #expect(
      try read(#"{"listen":7000,"peer":["a:1","b:2"],"relay":true,"log-level":"debug"}"#)
        == ["listen": ["7000"], "peer": ["a:1", "b:2"], "relay": [""], "log-level": ["debug"]])
    #expect(try read(#"{"relay":false,"peer":"a:1"}"#) == ["peer": ["a:1"]])
    #expect(try read("{}") == [:])
  }

  @Test("an option that takes an object has it as it is, and one of the same name that is not for the file stays unset")
  func objects() throws {
    let founding = Verb(
      "found", "f", options: [OptionSpecification("profile", .object, "", configurable: true)], examples: []
    ) { _, _ throws(Failure) in }
    let inviting = Verb(
      "ask", "a", options: [OptionSpecification("profile", .object, "")], examples: []
    ) { _, _ throws(Failure) in }
    let file = try ConfigurationFile(
      Array(#"{"profile":{"agency":"W"}}"#.utf8), path: "f.json", verbs: [founding, inviting])
    #expect(file.options(of: founding) == ["profile": [#"{"agency":"W"}"#]])
    #expect(file.options(of: inviting) == [:])
    #expect(throws: Failure.self) {
      try ConfigurationFile(Array(#"{"profile":"W"}"#.utf8), path: "f.json", verbs: [founding])
    }
  }

  @Test("the command line goes before the file")
  func precedence() throws {
    var invocation = Invocation(verb: "go", options: ["listen": ["1"]])
    invocation.fill(from: try read(#"{"listen":"2","relay":true}"#))
    #expect(invocation["listen"] == "1" && invocation.has("relay"))
  }

  @Test(
    "what the file may not set is refused by name",
    arguments: [
      (#"{"lisen":1}"#, "did you mean listen?"), (#"{"filter":"{}"}"#, "filter"), (#"{"data":"/x"}"#, "data"),
      (#"{"relay":"yes"}"#, "true or false"), (#"{"log-level":"loud"}"#, "debug"), (#"{"listen":["1"]}"#, "listen"),
      ("{", "Line 1"), (#"{"peer":[1.5]}"#, "peer"),
    ])
  func refusals(text: String, named: String) {
    do throws(Failure) {
      _ = try read(text)
      Issue.record("accepted: \(text)")
    } catch {
      #expect(error.message.contains(named) && error.message.contains("f.json"), "\(error.message)")
    }
  }

  @Test("a missing file sets nothing")
  func missing() throws {
    #expect(try ConfigurationFile(directory: "/nonexistent", verbs: [verb]).options(of: verb).isEmpty)
  }
}
