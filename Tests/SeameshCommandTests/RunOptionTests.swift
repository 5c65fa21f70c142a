import Foundation
import Links
import LocalAPITestSupport
import Replication
import Seamesh
import Testing
import Wire

@testable import LocalAPI
@testable import SeameshCommand

@Suite("What a node is started with")
struct RunOptionTests {
  private func configured(_ options: [String: [String]]) throws(Failure) -> NodeConfiguration {
    try nodeConfiguration(Invocation(verb: "run", options: options))
  }

  private func refusal(_ options: [String: [String]]) -> String {
    do throws(Failure) {
      _ = try configured(options)
      return "taken"
    } catch {
      return error.status == .usage ? error.message : "not of usage: \(error.message)"
    }
  }

  @Test("without options a node listens wherever it can, finds others by itself and relays nothing")
  func defaults() throws {
    let configuration = try configured([:])
    #expect(configuration.listenPort == NodeConfiguration().listenPort && configuration.peers.isEmpty)
    #expect(configuration.usesDiscovery && !configuration.isRelay && configuration.logPath == nil)
  }

  @Test("an address is a port, or an address with one")
  func listening() throws {
    #expect(try configured(["listen": ["7000"]]).listenPort == 7_000)
    let address = try configured(["listen": ["10.0.0.1:7000"]])
    #expect(
      address.listenPort == 7_000
        && String(describing: address.listenHost) != String(describing: NodeConfiguration().listenHost))
    #expect(try configured(["listen": ["[::1]:0"]]).listenPort == 0)
    for text in ["x", "", "70000", "10.0.0.1", "10.0.0.1:", "::1:7", "host:7000", "-1"] {
      #expect(refusal(["listen": [text]]).hasPrefix("--listen takes PORT or ADDR:PORT"), "\(text)")
    }
  }

  @Test("peers, relay, discovery and log are taken as given")
  func others() throws {
    let configuration = try configured([
      "peer": ["10.0.0.2:7000", "host.example:7"], "relay": [""], "no-discovery": [""], "log-level": ["debug"],
      "log-file": ["/var/log/x"],
    ])
    #expect(configuration.peers.count == 2 && configuration.isRelay && !configuration.usesDiscovery)
    #expect(configuration.logPath == "/var/log/x" && String(describing: configuration.logLevel).hasSuffix("debug"))
    for text in ["host", ":7", "host:", "host:x", "host:70000"] {
      #expect(refusal(["peer": ["10.0.0.2:7", text]]) == "--peer takes HOST:PORT, not \(text)")
    }
    #expect(try configured(["log-file": ["x"]]).logPath?.hasPrefix("/") == true)
  }

  @Test("a link is a class with interfaces and routes, a limit that it has of itself, and what it carries")
  func links() throws {
    let rules = try configured([
      "link": [
        #"{"class": "satellite", "interfaces": ["ppp*"], "routes": ["10.0.0.0/8", "fd00::1"], "carries": ["a=1", "*"]}"#,
        #"{"class": "mobile", "bytesPerDay": null}"#, #"{"class": "none", "interfaces": ["tun0"]}"#,
        #"{"class": "harbour", "bytesPerDay": 1}"#,
      ]
    ]).links
    #expect(rules.map(\.linkClass) == [.satellite, .mobile, .closed, .harbour])
    #expect(rules.map(\.bytesPerDay) == [10_000_000, nil, nil, 1])
    #expect(
      rules[0].carries == ["a=1", "*"] && rules[0].routes.map(\.bitCount) == [8, 128] && rules[1].carries == nil)
    for (text, reason) in [
      ("x", "--link"), ("[]", "--link takes a JSON object"), ("{}", "--link: a link needs a class, one of harbour"),
      (#"{"class": "wifi"}"#, "--link: a link needs a class"),
      (#"{"class": "mobile", "limit": 1}"#, "--link: a link has no member limit; it has class, interfaces"),
      (#"{"class": "mobile", "interfaces": "x"}"#, "--link: interfaces is a list of strings"),
      (#"{"class": "mobile", "interfaces": [""]}"#, "--link: interfaces is a list of strings"),
      (#"{"class": "mobile", "bytesPerDay": 0}"#, "--link: bytesPerDay is a whole number above 0, or null"),
      (#"{"class": "mobile", "bytesPerDay": 1.5}"#, "--link: bytesPerDay is"),
      (#"{"class": "mobile", "routes": ["10.0.0.0/33"]}"#, "--link: 10.0.0.0/33 is no route"),
      (#"{"class": "mobile", "routes": ["10.0.0.0/"]}"#, "--link: 10.0.0.0/ is no route"),
      (#"{"class": "mobile", "routes": ["10.0.0.0/8/8"]}"#, "--link: 10.0.0.0/8/8 is no route"),
      (#"{"class": "mobile", "routes": ["host"]}"#, "--link: host is no route"),
      (#"{"class": "mobile", "carries": ["\u0001"]}"#, "--link: \u{1} is no partition"),
    ] {
      #expect(refusal(["link": [text]]).hasPrefix(reason), "\(text): \(refusal(["link": [text]]))")
    }
    #expect(refusal(["link": [#"{"class": "mobile"}"#, #"{"class": "mobile"}"#]]).contains("mobile has two rules"))
  }

  private func ready(isNew: Bool, isElsewhere: Bool = false, url: String? = nil) -> ReadyLine {
    ReadyLine(
      device: String(repeating: "d", count: 64), fleet: String(repeating: "f", count: 64), listen: ["0.0.0.0:7000"],
      api: LocalEndpoints(socket: "/d/api.sock", socketIsElsewhere: isElsewhere, url: url, tokenFile: nil),
      isNewFleet: isNew, isStoreFetched: false)
  }

  @Test("the ready line says for people and for scripts where the node is, and whether it made a fleet")
  func readyLines() throws {
    let plain = ready(isNew: false)
    #expect(
      plain.text
        == "ready: device dddddddddddd of fleet ffffffffffff, listening on 0.0.0.0:7000\nlocal interface: /d/api.sock")
    let full = ready(isNew: true, isElsewhere: true, url: "http://127.0.0.1:80")
    #expect(full.text.contains("/d/api.sock and http://127.0.0.1:80\n(the data directory's path is too long"))
    #expect(
      full.text.hasSuffix(
        "new fleet made; to enter an existing one, stop and run: seamesh join CODE --data=DIR, with another directory"))
    let json = try ExtendedJSON.parseMap(Array(full.json.utf8))
    #expect(json.text("event") == "ready" && json.text("device").count == 64 && json.flag("newFleet"))
    #expect(json["api"]?.map?.text("url") == "http://127.0.0.1:80" && json.text("note").contains("seamesh join CODE"))
    let quiet = try ExtendedJSON.parseMap(Array(plain.json.utf8))
    #expect(quiet["api"]?.map?["url"] == .null && quiet["note"] == nil && quiet["newFleet"] == .bool(false))
    #expect(!full.json.contains("\n"))
  }

  @Test("an object for --profile is taken, anything else is a mistake of usage")
  func profiles() throws {
    func read(_ text: String?) throws(Failure) -> ValueMap {
      try profileOption(Invocation(verb: "init", options: text.map { ["profile": [$0]] } ?? [:]))
    }
    #expect(try read(nil).isEmpty && read(#"{"agency":"W"}"#).text("agency") == "W")
    for text in ["[]", "1", "{", ""] { #expect(#expect(throws: Failure.self) { try read(text) }?.status == .usage) }
  }

  @Test("every refusal of a node has an exit status", arguments: NodeError.Code.allCases)
  func exitStatuses(code: NodeError.Code) {
    let expected: [NodeError.Code: Int32] = [
      .notFound: 3, .notPermitted: 4, .badRequest: 2, .storeFailed: 7, .otherVersion: 8,
    ]
    let failure = Failure(NodeError(code, "why"))
    #expect(failure.status.rawValue == expected[code] ?? 1 && failure.message == "why")
  }
}

@Suite("Where options come from", .enabled(if: isCommandBuilt))
struct PrecedenceTests {
  let node = FakeNode()
  let server: TestedServer

  init() throws { server = try TestedServer(node) }

  @Test("--data goes before SEAMESH_DATA, that before XDG_DATA_HOME, that before the home")
  func directories() throws {
    let there = server.directory
    for (arguments, environment) in [
      (["--data", there], ["SEAMESH_DATA": "/nonexistent"]),
      ([], ["SEAMESH_DATA": there, "XDG_DATA_HOME": "/nonexistent"]),
    ] as [([String], [String: String])] {
      #expect(try run(commandPath, ["status"] + arguments, environment: environment).status == 0)
    }
    for environment in [["XDG_DATA_HOME": there], ["HOME": there], ["SEAMESH_DATA": "", "HOME": there]] {
      let none = try run(commandPath, ["status"], environment: environment)
      #expect(none.status == 5 && none.error.contains("no node is running on \(there)/"), "\(none.error)")
    }
    let homeless = try run(commandPath, ["status"], environment: [:])
    #expect(homeless.isRefusal && homeless.status == 2 && homeless.error.contains("--data DIR"))
    #expect(try server.run(["status", "--data="]).status == 2)
  }

  @Test("a configuration file with a mistake stops every verb that reads it, with its path and the place")
  func mistakes() throws {
    for (text, word) in [("{", "Line 1"), (#"{"lisen":"7"}"#, "did you mean listen?"), (#"{"peer":7.5}"#, "peer")] {
      let path = try server.file("seamesh.json", text)
      let refused = try server.run(["status"])
      #expect(refused.isRefusal && refused.status == 1, "\(refused.error)")
      #expect(refused.error.contains(path) && refused.error.contains(word), "\(refused.error)")
    }
    _ = try server.file("seamesh.json", "{ \"log-level\" : \"debug\" }")
    #expect(try server.run(["status"]).status == 0)
  }

  @Test("a file's own users and profile are not those whom an invitation is for")
  func invitations() throws {
    _ = try server.file("seamesh.json", #"{"user":"ann","profile":{"agency":"W"}}"#)
    #expect(try server.run(["invite"]).error.contains("--user=ID is missing"))
    #expect(try server.run(["invite", "--user=bob"]).status == 0)
    #expect(node.lastInvitation?.user == "bob" && node.lastInvitation?.profile.isEmpty == true)
  }
}
