import Testing

@testable import SeameshCommand

@Suite("The command line")
struct ParserTests {
  let parser = Parser(verbs: verbTable)

  private func invocation(_ arguments: String...) throws -> Invocation {
    guard case .run(let invocation) = try parser.parse(arguments) else { throw Failure(.failed, "not a run") }
    return invocation
  }

  private func message(_ arguments: String...) -> String {
    do throws(Failure) {
      _ = try parser.parse(arguments)
      return "understood"
    } catch {
      return error.status == .usage ? error.message : "not of usage"
    }
  }

  @Test("options stand anywhere, with their value behind = or as the next argument")
  func options() throws {
    let first = try invocation("find", "p", "--limit=3", "c", "--filter", "{}")
    #expect(first.operands == ["p", "c"])
    #expect(first["limit"] == "3" && first["filter"] == "{}")
    #expect(try first.count("limit") == 3)
    let second = try invocation("--data", "/d", "--json", "find", "p", "c")
    #expect(second["data"] == "/d" && second.has("json"))
    #expect(try invocation("find", "p", "c", "--filter=a=b")["filter"] == "a=b")
    #expect(try invocation("find", "p", "c", "--filter=")["filter"] == "")
  }

  @Test("-- ends options, and - alone is an argument")
  func endOfOptions() throws {
    #expect(try invocation("get", "--", "--p", "-c", "--help").operands == ["--p", "-c", "--help"])
    #expect(try invocation("put", "p", "c", "-").operands == ["p", "c", "-"])
    #expect(try invocation("subscribe", "--", "--").operands == ["--"])
  }

  @Test("an option that repeats keeps all its values, any other is refused twice")
  func repetition() throws {
    #expect(try invocation("patch", "p", "c", "i", "--set=a=1", "--set=b=2").all("set") == ["a=1", "b=2"])
    #expect(message("find", "p", "c", "--limit=1", "--limit=2").contains("2 times"))
    #expect(try invocation("status", "--json", "--json").has("json"))
  }

  @Test("help and version are understood before and after a verb, whatever else is missing")
  func help() throws {
    #expect(try parser.parse(["--help"]) == .help(nil))
    #expect(try parser.parse(["-h"]) == .help(nil))
    #expect(try parser.parse(["put", "-h"]) == .help("put"))
    #expect(try parser.parse(["import", "--help", "x"]) == .help("import"))
    #expect(try parser.parse(["--version"]) == .version)
  }

  @Test("what was mistyped is answered with what was probably meant")
  func suggestions() {
    #expect(message("stauts").contains("did you mean status?"))
    #expect(message("exprot").contains("did you mean export?"))
    #expect(message("xyzzy").contains("seamesh help lists the verbs"))
    #expect(message("find", "p", "c", "--fitler={}").contains("did you mean --filter?"))
    #expect(message("find", "p", "c", "--zzzzzz").contains("seamesh find --help"))
    #expect(message("--jsn", "status").contains("did you mean --json?"))
  }

  @Test("what is missing or too much is named, with the usage")
  func operands() {
    #expect(message() == "no verb was given; seamesh help lists them")
    #expect(message("get", "p", "c").contains("ID is missing"))
    #expect(message("get", "p", "c", "i", "x").contains("x is one argument too many"))
    #expect(message("status", "x").contains("usage is: seamesh status"))
    #expect(message("completion", "tcsh").contains("bash, zsh, fish"))
    #expect(message("find", "p", "c", "--limit").contains("--limit needs a value"))
    #expect(message("status", "--json=yes").contains("takes no value"))
    #expect(message("get", "p", "c", "i", "--id-type=guid").contains("string, oid, uuid, int, not"))
    #expect(message("status", "-x").contains("no option -x"))
  }

  @Test("control characters of what was typed do not reach the terminal")
  func controlCharacters() {
    #expect(!message("a\u{1b}[31mb").contains("\u{1b}"))
    #expect(!message("find", "p", "c", "--x\u{7}").contains("\u{7}"))
  }

  @Test(
    "the distance of two words counts insertions, deletions, substitutions and swaps",
    arguments: [
      ("", "", 0), ("a", "", 1), ("put", "put", 0), ("ptu", "put", 1), ("puts", "put", 1), ("pit", "put", 1),
      ("status", "stats", 1), ("kitten", "sitting", 3),
    ])
  func distance(a: String, b: String, expected: Int) {
    #expect(editDistance(Array(a.utf8), Array(b.utf8)) == expected)
    #expect(editDistance(Array(b.utf8), Array(a.utf8)) == expected)
  }

  @Test("the data directory is the option's, else the environment's, else XDG's, else the home's")
  func directories() throws {
    let bare = Invocation(verb: "status")
    let given = Invocation(verb: "status", options: ["data": ["/d"]])
    let all = ["SEAMESH_DATA": "/e", "XDG_DATA_HOME": "/x", "HOME": "/h"]
    #expect(try dataDirectory(given, environment: all) == "/d")
    #expect(try dataDirectory(bare, environment: all) == "/e")
    #expect(try dataDirectory(bare, environment: ["XDG_DATA_HOME": "/x", "HOME": "/h"]) == "/x/seamesh")
    #expect(try dataDirectory(bare, environment: ["XDG_DATA_HOME": "x", "HOME": "/h"]) == "/h/.local/share/seamesh")
    #expect(throws: Failure.self) { try dataDirectory(bare, environment: [:]) }
    let relative = Invocation(verb: "status", options: ["data": ["d"]])
    #expect(try dataDirectory(relative, environment: [:]).hasPrefix("/"))
  }

  @Test(
    "every verb takes what its synopsis says, and one operand less or more is named", arguments: verbTable.map(\.name))
  func arity(name: String) throws {
    let verb = try parser.verb(name)
    let least = verb.operands.filter { $0.presence == .required || $0.presence == .oneOrMore }
    let words = least.map { operand in if case .choice(let choices) = operand.kind { choices[0] } else { "x" } }
    guard case .run(let invocation) = try parser.parse([name] + words) else {
      Issue.record("\(name) was not understood")
      return
    }
    #expect(invocation.operands == words)
    let isOpen = verb.operands.contains { $0.presence == .oneOrMore || $0.presence == .zeroOrMore }
    func refusal(_ words: [String]) -> String {
      do throws(Failure) {
        _ = try parser.parse([name] + words)
        return ""
      } catch {
        return error.message
      }
    }
    if let last = least.last {
      #expect(
        refusal(Array(words.dropLast()))
          == "\(last.name) is missing; the usage is: \(verb.synopses.joined(separator: ", or "))")
    }
    let tooMany = words + Array(repeating: "x", count: verb.operands.count - words.count + 1)
    #expect(isOpen ? refusal(tooMany).isEmpty : refusal(tooMany).contains("one argument too many"))
  }

  @Test("the old way to say that fields are taken away is no option any more, and the hint names what there is")
  func oldOptions() {
    #expect(message("put", "p", "c", "--erase-absent").contains("no option --erase-absent"))
    #expect(message("import", "p", "c", "f", "--keep-absnt").contains("did you mean --keep-absent?"))
    #expect(message("patch", "p", "c", "i", "{}", "--upsrt").contains("did you mean --upsert?"))
  }

  @Test("a count is a whole number from 0 on", arguments: ["-1", "x", "1.5", "", "99999999999999999999"])
  func counts(text: String) {
    let invocation = Invocation(verb: "find", options: ["limit": [text]])
    #expect(#expect(throws: Failure.self) { try invocation.count("limit") }?.status == .usage)
    #expect(throws: Never.self) { try Invocation(verb: "find").count("limit") }
  }

  @Test("a word resembles another by a third of its letters at most, and by less than all of them")
  func resemblance() {
    #expect(nearest("subscribe", ["unsubscribe", "subscribe"]) == "subscribe")
    #expect(nearest("ab", ["xy"]) == nil && nearest("", ["ab"]) == nil && nearest("a", []) == nil)
    #expect(nearest("partitons", verbTable.map(\.name)) == "partitions")
    #expect(nearest(String(repeating: "x", count: 10_000), ["put"]) == nil)
  }
}
