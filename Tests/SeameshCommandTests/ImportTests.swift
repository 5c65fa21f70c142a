import Foundation
import LocalAPI
import LocalAPITestSupport
import Replication
import Seamesh
import Testing
import Wire

@testable import SeameshCommand

@Suite("Imports and exports", .enabled(if: isCommandBuilt))
struct ImportTests {
  let node = FakeNode()
  let server: TestedServer

  init() throws { server = try TestedServer(node) }

  private func seamesh(_ arguments: String..., input: String = "") throws -> CommandResult {
    try server.run(arguments, input: input)
  }

  private func asideFiles() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: server.directory).filter { $0.hasPrefix("import-aside") }
  }

  private func aside() throws -> [ValueMap] {
    let name = try #require(try asideFiles().first)
    return try String(contentsOfFile: server.directory + "/" + name, encoding: .utf8).split(separator: "\n")
      .map { try ExtendedJSON.parseMap(Array($0.utf8)) }
  }

  @Test("records that are put aside are told once each, in the order of their lines, whoever refused them")
  func order() throws {
    node.refuse(.int(2), NodeError(.tooLarge, "too many bytes."))
    node.refuse(.int(7), NodeError(.notPermitted, "not yours"))
    let file = try server.file(
      "r.jsonl",
      """
      {"_id":1}
      {"_id":2}
      {"_id":3,
      {"_id":4,"a":nul}
      5
      {"_id":6}
      {"_id":7}
      {"_id":8,"a":1,"a":2}

      """)
    let result = try seamesh("import", "p", "c", file)
    #expect(result.status == 1 && result.errors.last == "seamesh: 6 records could not be stored")
    let places = result.errors.dropLast().map { $0.dropFirst("seamesh: \(file), ".count).prefix { $0 != ":" } }
    #expect(
      places == [
        "line 2", "line 3, at line 4, column 1", "line 4, column 14 (a)", "line 5, column 1", "line 7",
        "line 8, column 16",
      ], "\(result.error)")
    #expect(result.errors.first == "seamesh: \(file), line 2: too many bytes; put aside")
    #expect(result.errors.count == 7)
    #expect(result.output.hasPrefix("imported 2; 6 put aside in \(server.directory)/import-aside-"))
    #expect(try aside().map { $0.number("line") } == [2, 3, 4, 5, 7, 8])
    #expect(Set(node.ids) == [.int(1), .int(6)])
  }

  @Test(
    "a record of more values than a document can have is told by its line, and the others go in",
    arguments: [true, false])
  func tooManyValues(byField: Bool) throws {
    let limit = ServerLimit.documentValues
    let many = "[" + String(repeating: "1,", count: limit) + "1]"
    let file = try server.file(
      "r.jsonl", "{\"_id\":1,\"a\":\"x\"}\n{\"a\":\"x\",\"n\":\n\(many)}\n{\"_id\":3,\"a\":\"x\"}\n")
    let result = try byField ? seamesh("import", "--partition-by=a", "c", file) : seamesh("import", "p", "c", file)
    #expect(result.status == 1 && result.output.hasPrefix("imported 2; 1 put aside in "), "\(result.error.prefix(500))")
    let told = try #require(result.errors.first)
    #expect(told.hasPrefix("seamesh: \(file), lines 2 to 3, at line 3, column "), "\(told)")
    #expect(told.contains("more than \(limit) values, objects and arrays with what is in them"), "\(told)")
    #expect(Set(node.ids) == [.int(1), .int(3)])
  }

  @Test("several files are told in their order, each with lines of its own")
  func severalFiles() throws {
    let first = try server.file("one.json", "[{\"_id\":1},\n {\"_id\":[2]}]")
    let second = try server.file("two.json", "{\"_id\":[3]}\n{\"_id\":4}")
    let result = try seamesh("import", "p", "c", first, second, "-", input: "\n\n{\"_id\":[5]}")
    let places = result.errors.dropLast().map { $0.dropFirst("seamesh: ".count).prefix { $0 != ":" } }
    #expect(places == ["\(first), line 2", "\(second), line 1", "standard input, line 3"])
    #expect(try aside().map { $0.text("file") } == [first, second, "standard input"])
  }

  @Test("machines are told of records that are put aside as objects, one on each line, the failure last")
  func asideForMachines() throws {
    let result = try seamesh("import", "--json", "p", "c", "-", input: "{\"_id\":1}\n{\"_id\":[]}\n{")
    let told = try result.errors.map { try ExtendedJSON.parseMap(Array($0.utf8)) }
    #expect(told.map { $0["line"] } == [.int(2), .int(3), nil] && told.last?["status"] == .int(1))
    #expect(told.dropLast().allSatisfy { $0["file"] == .string("standard input") && $0["reason"] != nil })
  }

  @Test("a script sees that something was put aside, also where the rest went in")
  func statuses() throws {
    #expect(try seamesh("import", "p", "c", "-", input: "{\"_id\":1}").status == 0)
    let some = try seamesh("import", "p", "c", "-", input: "{\"_id\":1}\n{")
    #expect(some.status == 1 && some.output.hasPrefix("imported 1; 1 put aside in ") && some.errors.count == 2)
    #expect(some.errors.last == "seamesh: 1 record could not be stored")
    let none = try seamesh("import", "p", "c", "-", input: "{\"_id\":[]}")
    #expect(none.status == 1 && none.errors.last == "seamesh: no record could be stored")
    #expect(try seamesh("import", "p", "c", "-", input: "").output == "imported 0\n")
    #expect(try seamesh("import", "p", "c", "-", input: "[]").status == 0)
    let missing = try seamesh("import", "p", "c", "/nonexistent", "-", input: "{\"_id\":9}")
    #expect(missing.isRefusal && missing.status == 3 && !node.ids.contains(.int(9)))
    #expect(try seamesh("import", "p", "c").status == 2)
    #expect(try seamesh("import", "--partition-by=agency", "c").error.contains("--partition-by=FIELD [OPTION]..."))
    #expect(try seamesh("import", "p", "c").error.contains("FILE is missing"))
    #expect(try seamesh("import", "--partition-by=", "c", "-").status == 2)
  }

  @Test("JSON comes as an array or as records one after the other, with or without a byte order mark and line breaks")
  func forms() throws {
    for text in [
      "[{\"_id\":1},{\"_id\":2}]", "{\"_id\":1}{\"_id\":2}", "\u{feff}{\"_id\":1}\r\n{\"_id\":2}\r\n",
      " \n[\n{\"_id\":1}\n,\n{\"_id\":2\n}\n]\n", "{\"_id\":1}\n\n\n{\n\"_id\":2}",
    ] {
      let result = try seamesh("import", "p", "c", "-", input: text)
      #expect(result.status == 0 && result.output.hasPrefix("imported 2"), "\(text): \(result.error)")
    }
    #expect(Set(node.ids) == [.int(1), .int(2)])
    let csv = try seamesh("import", "p", "c", "-", input: "_id,n\n1,2\n")
    #expect(csv.status == 1 && csv.error.contains("an object is needed"))
    let named = try seamesh("import", "p", "c", "Reports.CSV")
    #expect(
      named.status == 2
        && named.error == "seamesh: Reports.CSV: CSV is not taken; make a JSON array or JSON lines of it\n")
  }

  @Test("only the first reasons are told, the file has them all, and a record as it was")
  func manyReasons() throws {
    let lines = (0..<30).map { "{\"_id\":[\($0)],\"name\":\"Zoë\"}" }
    let result = try seamesh("import", "p", "c", "-", "--json", input: lines.joined(separator: "\n"))
    #expect(result.errors.count == 22 && result.errors[20].contains("without being named here"))
    let counts = try ExtendedJSON.parseMap(Array(result.output.utf8))
    #expect(counts.number("aside") == 30 && counts.number("imported") == 0)
    let entries = try aside()
    #expect(entries.map { $0.text("record") } == lines)
    #expect(entries.allSatisfy { $0.text("reason").contains("an id is a string") })
    let mode = try FileManager.default.attributesOfItem(atPath: counts.text("asideFile"))[.posixPermissions] as? Int
    #expect(mode == 0o600)
  }

  @Test("a record that is no text is kept byte for byte, and a very large one by its beginning")
  func oddRecords() throws {
    let path = server.directory + "/odd.jsonl"
    try Data(Array("{\"_id\":1,\"a\":\"".utf8) + [0xff, 0xfe] + Array("\"}\n".utf8)).write(
      to: URL(fileURLWithPath: path))
    #expect(try seamesh("import", "p", "c", path).status == 1)
    guard case .bytes(let bytes)? = try aside().first?["record"] else {
      Issue.record("the record is not kept as bytes")
      return
    }
    #expect(bytes.contains(0xff) && bytes.first == UInt8(ascii: "{"))
    let large = "{\"_id\":2,\"t\":\"" + String(repeating: "x", count: 8_500_000) + "\"}"
    let refused = try seamesh("import", "p", "c", try server.file("large.json", large + "\n{\"_id\":3}"))
    #expect(refused.status == 1 && refused.error.contains("more than a document may have"), "\(refused.error)")
    #expect(node.ids == [.int(3)])
  }

  @Test("of a file of records put aside the records go in, given the partition that they lacked, or mended")
  func asideAgain() throws {
    let records = """
      {"_id":1,"name":"Zoë"}
      {"_id":2,
       "a":[1]}
      {"_id":3,"a":nul}
      {"_id":4,"agency":"A"}
      """
    let first = try seamesh("import", "--partition-by=agency", "c", "-", "--json", input: records)
    let path = try ExtendedJSON.parseMap(Array(first.output.utf8)).text("asideFile")
    let mended = try String(contentsOfFile: path, encoding: .utf8).replacing("nul}", with: "null}")
    let second = try seamesh("import", "agency=B", "c", try server.file("mended.jsonl", mended))
    #expect(second.status == 0 && second.output == "imported 3\n", "\(second.error)")
    #expect(Set(node.ids) == [.int(1), .int(2), .int(3), .int(4)])
    let stored = try seamesh("get", "agency=B", "c", "1", "--id-type=int").output
    #expect(stored == "{\"_id\":1,\"name\":\"Zoë\"}\n")
  }

  @Test(
    "a record put aside that still cannot be stored is put aside by itself, with its line in the file that was imported"
  )
  func asideTwice() throws {
    let lines = [
      #"{"file":"old.jsonl","line":70,"reason":"x","record":"{\"_id\":1}"}"#,
      #"{"file":"old.jsonl","lastLine":72,"line":71,"reason":"x","record":"{\"_id\":2,\n\"a\":nul}"}"#,
      #"{"file":"old.jsonl","line":80,"reason":"x","record":"{\"_id\":3","recordBytes":99999}"#,
    ]
    let path = try server.file("aside.jsonl", lines.joined(separator: "\n"))
    let result = try seamesh("import", "p", "c", path)
    #expect(result.status == 1 && node.ids == [.int(1)])
    #expect(result.errors.first?.hasPrefix("seamesh: \(path), line 2, column 15 (a): ") == true, "\(result.error)")
    #expect(result.errors.dropFirst().first?.hasPrefix("seamesh: \(path), line 3: only the beginning") == true)
    let entries = try aside()
    #expect(entries.map { $0.number("line") } == [2, 3] && entries.map { $0.number("recordBytes") } == [0, 99_999])
    #expect(entries.map { $0.text("record") } == [#"{"_id":2, "a":nul}"#, #"{"_id":3"#])
  }

  @Test("a record put aside that was mended without its quotation marks goes in, and a line that lost a field does not")
  func mendedByHand() throws {
    let path = server.directory + "/import-aside-a.jsonl"
    let lines = [
      #"{"file":"f","line":1,"reason":"r","record":{"_id":"a","n":1}}"#,
      #"{"file":"f","line":2,"record":"{\"_id\":\"b\"}"}"#, #"{"_id":"c","record":"7"}"#,
      #"{"file":"f","line":4,"reason":"r","record":"{\"_id\":\"d\",\"record\":1,\"reason\":\"x\"}"}"#,
      #"{"file":"f","line":5,"reason":"r","record":"{\"file\":\"g\",\"line\":9,\"reason\":\"s\",\"record\":\"{}\"}"}"#,
    ]
    try lines.joined(separator: "\n").write(toFile: path, atomically: true, encoding: .utf8)
    let result = try seamesh("import", "p", "c", path)
    #expect(result.output.hasPrefix("imported 4; 1 put aside") && result.status == 1, "\(result)")
    // What is in a line is a record, even if it looks like such a line.
    #expect(node.ids.count == 4 && Set(node.ids).isSuperset(of: ["a", "c", "d"].map { .string($0) }))
    #expect(try seamesh("find", "p", "c", "--filter", #"{"file":"g","record":"{}"}"#).output.contains("\"line\":9"))
  }

  @Test(
    "a document is not taken for a record put aside for some of its fields",
    arguments: [
      #"{"_id":1,"file":"f","line":1,"reason":"r","record":"{}"}"#, #"{"file":"f","line":1,"reason":"r"}"#,
      #"{"file":"f","line":1,"reason":"r","record":"{}","n":1}"#, #"{"record":"{}"}"#, "{}",
      #"{"file":"f","line":"1","reason":"r","record":"{}"}"#,
      #"{"file":"f","line":1,"reason":"r","record":"{","lastLine":""}"#,
    ])
  func documents(text: String) throws {
    var reader = JSONRecordReader()
    reader.append(Array(text.utf8))
    guard case .record(let record)? = reader.next() else {
      Issue.record("no record")
      return
    }
    #expect(AsideLine(record, in: "reports.jsonl") == nil)
    #expect(try seamesh("import", "p", "c", "-", input: text).output == "imported 1\n")
    #expect(node.ids.count == 1)
  }

  @Test(
    "a line that may be a record put aside or a document is put aside, and goes in under such a name, or with an _id")
  func doubtfulLine() throws {
    let line = #"{"file":"f","line":1,"reason":"r","record":{"_id":"a"}}"#
    let result = try seamesh("import", "p", "c", "-", input: line)
    #expect(result.status == 1 && node.ids.isEmpty && result.error.contains("put aside without its"))
    let named = server.directory + "/import-aside-b.jsonl"
    try line.write(toFile: named, atomically: true, encoding: .utf8)
    #expect(try seamesh("import", "p", "c", named).status == 0 && node.ids == [.string("a")])
    let own = line.replacing("{\"file\"", with: "{\"_id\":\"own\",\"file\"")
    #expect(
      try seamesh("import", "p", "c", "-", input: own).status == 0 && Set(node.ids) == [.string("a"), .string("own")])
  }

  @Test("a busy node is asked again, and a node in trouble ends the import with what was stored until then")
  func trouble() throws {
    node.beBusy(times: 1)
    #expect(try seamesh("import", "p", "c", "-", input: "{\"_id\":1}").output == "imported 1\n")
    node.refuse(.int(600), NodeError(.diskFull, "the disk is full"))
    let lines = (0..<700).map { "{\"_id\":\($0)}" }.joined(separator: "\n")
    let result = try seamesh("import", "p", "c", "-", input: "{\"_id\":[0]}\n" + lines)
    #expect(result.status == 1)
    #expect(result.errors.first?.contains("line 1: an id is") == true, "\(result.error)")
    #expect(result.errors.last?.hasPrefix("seamesh: the disk is full (stopped after ") == true)
    #expect(try aside().count == 1)
  }

  @Test("a document that is damaged here is put aside, and keeps none of its batch, nor what follows, from going in")
  func damagedDocument() throws {
    node.refuse(.int(2), NodeError(.damaged, "the document is damaged here"))
    let lines = (1...700).map { "{\"_id\":\($0)}" }.joined(separator: "\n")
    let result = try seamesh("import", "--keep-absent", "p", "c", "-", input: lines)
    #expect(result.status == 1 && result.output.hasPrefix("imported 699; 1 put aside"), "\(result)")
    #expect(result.errors.first?.contains("line 2: the document is damaged here") == true && node.ids.count == 699)
  }

  @Test("what the node answered for the rest of a batch is taken before its trouble ends the import")
  func restOfBatch() throws {
    node.refuse(.int(2), NodeError(.diskFull, "the disk is full"))
    node.refuse(.int(4), NodeError(.notPermitted, "not yours"))
    let lines = (1...5).map { "{\"_id\":\($0)}" }.joined(separator: "\n")
    let result = try seamesh("import", "p", "c", "-", input: lines)
    #expect(result.errors.last == "seamesh: the disk is full (stopped after 3 stored documents)", "\(result)")
    #expect(try aside().map { $0.number("line") } == [4])
  }

  @Test("records for which the node is busy are sent again, and they alone")
  func busyRecords() throws {
    node.beBusy(with: .int(2), times: 2)
    node.beBusy(with: .int(3), times: 1)
    let result = try seamesh("import", "p", "c", "-", input: "{\"_id\":1}\n{\"_id\":2}\n{\"_id\":3}\n{\"_id\":[4]}")
    #expect(result.output.hasPrefix("imported 3; 1 put aside") && result.errors.count == 2, "\(result)")
    #expect(Set(node.ids) == [.int(1), .int(2), .int(3)] && node.writes == 3)
  }

  @Test("a record for which the node was busy is not put above a later one of its document") func busyRecordOfTwo()
    throws
  {
    node.beBusy(with: .int(2), times: 1)
    let result = try seamesh(
      "import", "p", "c", "-", input: "{\"_id\":2,\"n\":1}\n{\"_id\":3}\n{\"_id\":2,\"n\":2}")
    #expect(result.output.hasPrefix("imported 3"), "\(result)")
    #expect(try seamesh("get", "p", "c", "2", "--id-type=int").output.contains("\"n\":2"))
  }

  @Test("a document that is much longer as JSON than it is stored goes in again as it came out, by put and by import")
  func longAsJSON() throws {
    let whole = try WholeNode()
    let flags = repeatElement("false", count: 900_000).joined(separator: ",")
    let document = try whole.server.file("d.json", "{\"_id\":\"a\",\"flags\":[" + flags + "]}")
    #expect(try whole.seamesh("put", "p", "c", "--file", document).status == 0)
    let shown = try whole.seamesh("get", "p", "c", "a").output
    #expect(shown.utf8.count > 5_000_000)
    let again = try whole.server.file("again.json", shown)
    #expect(try whole.seamesh("put", "p", "c", "--file", again).status == 0)
    let lines = try whole.server.file("p.jsonl", try whole.seamesh("export", "p").output)
    #expect(try whole.seamesh("import", "--by-collection", "q", lines).output == "imported 1\n")
    #expect(try whole.seamesh("get", "q", "c", "a").output == shown)
    let large = try whole.server.file("l.json", "{\"_id\":\"b\",\"flags\":[" + flags + "," + flags + "]}")
    #expect(try whole.seamesh("put", "p", "c", "--file", large).status == 1)
  }

  @Test("the field that names the partition may lie deeper, and a field with dots in its name goes before")
  func fields() throws {
    let records = [#"{"_id":1,"v":{"agency":"A"}}"#, #"{"_id":2,"v.agency":"B"}"#, #"{"_id":3,"v":"C"}"#]
    let result = try seamesh("import", "--partition-by=v.agency", "c", "-", input: records.joined(separator: "\n"))
    #expect(result.status == 1 && result.error.contains("line 3: v.agency is missing"))
    #expect(try seamesh("get", "v.agency=A", "c", "1", "--id-type=int").status == 0)
    #expect(try seamesh("get", "v.agency=B", "c", "2", "--id-type=int").status == 0)
  }

  @Test("an export to a reader that leaves ends quietly")
  func leavingReader() throws {
    let lines = (0..<3_000).map { "{\"_id\":\($0),\"t\":\"\(String(repeating: "x", count: 200))\"}" }
    #expect(try seamesh("import", "p", "c", "-", input: lines.joined(separator: "\n")).status == 0)
    let line = "\(commandPath) export p c --data=\(server.directory) | head -n 2"
    let result = try run("/bin/sh", ["-c", line])
    #expect(result.lines.count == 2 && result.error.isEmpty, "\(result.error)")
  }

  @Test("an export that breaks on the way fails, with status 5")
  func brokenExport() throws {
    let lines = (0..<3).map { "{\"_id\":\($0),\"t\":\"\(String(repeating: "x", count: 200_000))\"}" }
    #expect(try seamesh("import", "p", "c", "-", input: lines.joined(separator: "\n")).status == 0)
    node.breakExports(NodeError(.failed, "the disk"))
    let result = try seamesh("export", "p", "c")
    #expect(result.status == 5 && result.error.contains("went away"), "\(result.error)")
    node.fail(NodeError(.failed, "the disk is damaged"))
    let early = try seamesh("export", "p", "c")
    #expect(early.isRefusal && early.status == 1 && early.error == "seamesh: the disk is damaged\n")
  }

  @Test("an array of an export is one JSON value, also of one document and of none")
  func arrays() throws {
    #expect(try seamesh("import", "p", "c", "-", input: #"{"_id":"a\u001b[31m"}"#).status == 0)
    #expect(try seamesh("export", "p", "c", "--array").output == "[\n{\"_id\":\"a\\u001b[31m\"}\n]\n")
    #expect(try seamesh("export", "p", "d", "--array").output == "[]\n")
    let named = try ExtendedJSON.parse(Array(seamesh("export", "p", "--array").output.utf8)).items
    #expect(named.first?.map?.text("collection") == "c")
  }

  @Test(
    "an export of a whole partition goes in again, each document into its collection, byte for byte", .serialized,
    arguments: [[], ["--array"]])
  func wholePartition(form: [String]) throws {
    let whole = try WholeNode()
    let reports =
      #"{"_id":{"$oid":"0123456789abcdef01234567"},"at":{"$date":"2026-05-31T12:00:00Z"}}"#
      + "\n" + #"{"_id":7,"nested":{"$literal":{"$set":1}}}"#
    #expect(try whole.seamesh("import", "agency=W", "reports", "-", input: reports).output == "imported 2\n")
    #expect(try whole.seamesh("import", "agency=W", "Zoë/b", "-", input: #"{"_id":"a"}"#).output == "imported 1\n")
    let exported = try whole.server.run(["export", "agency=W"] + form).output
    let result = try whole.seamesh("import", "--by-collection", "agency=V", "-", input: exported)
    #expect(result.output == "imported 3\n", "\(result)")
    #expect(try whole.server.run(["export", "agency=V"] + form).output == exported)
    #expect(try whole.seamesh("export", "agency=V", "Zoë/b").output == "{\"_id\":\"a\"}\n")
  }

  @Test("lines of a whole partition are no documents of one collection, nor documents such lines: they are put aside")
  func mistakenLines() throws {
    let lines = [#"{"collection":"d","document":{"_id":1}}"#, #"{"_id":2,"collection":"d","document":{}}"#]
    // Exported documents have an _id.
    #expect(try seamesh("import", "q", "c", "-", input: #"{"collection":"d","document":{"n":1}}"#).status == 0)
    #expect(try seamesh("find", "q", "c").output.contains(#""collection":"d""#))
    let into = try seamesh("import", "p", "c", "-", input: lines.joined(separator: "\n"))
    #expect(into.status == 1 && node.ids.contains(.int(2)) && node.ids.count == 2)
    #expect(into.errors.first?.contains("line 1: this looks like a line of an export of a whole partition") == true)
    #expect(try aside().map { $0.text("record") } == [lines[0]])
    // With the way that it names, the file of what was put aside goes in.
    let path = server.directory + "/" + (try #require(try asideFiles().first))
    #expect(try seamesh("import", "--by-collection", "p", path).output == "imported 1\n")
    #expect(try seamesh("export", "p", "d").output == "{\"_id\":1}\n")
    for line in [
      lines[1], #"{"collection":"","document":{}}"#, #"{"collection":"d","document":[]}"#, #"{"document":{"_id":3}}"#,
    ] {
      let result = try seamesh("import", "--by-collection", "p", "-", input: line)
      #expect(result.status == 1 && result.error.contains("the document with its _id"), "\(line): \(result)")
    }
    #expect(try seamesh("import", "--by-collection", "--partition-by=a", "p", "-").status == 2)
    #expect(try seamesh("import", "--by-collection", "p").status == 2)
  }

  @Test("a stream is cut into lines wherever its pieces end")
  func lines() {
    let text = Array("ab\n\ncd\ne".utf8)
    for size in 1...text.count {
      var (splitter, lines, rest) = (LineSplitter(), [[UInt8]](), text[...])
      while !rest.isEmpty {
        lines += splitter.append(rest.prefix(size))
        rest = rest.dropFirst(size)
      }
      #expect(lines.map { String(decoding: $0, as: UTF8.self) } == ["ab", "", "cd"], "\(size)")
    }
  }
}
