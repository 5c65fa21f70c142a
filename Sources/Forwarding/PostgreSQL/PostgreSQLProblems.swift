/// What the words and codes of libpq and of servers mean for a person. libpq tells why a connection failed by words alone; the
/// server's own refusals have a code among them.
enum PostgreSQLProblems {
  static func connecting(_ message: String, to address: PostgreSQLAddress) -> BackendProblem {
    let words = sentence(message, address)
    if let state = sqlState(in: message) { return answered(state, words, address) }
    let kind = words.lowercased()
    func says(_ parts: String...) -> Bool { parts.contains { kind.contains($0) } }
    if says("certificate", "ssl", "tls") { return tls(words, address) }
    if says("no password supplied", "password file", "sasl", "authentication") {
      return BackendProblem(.auth, "\(address.shown) asks for a password, and none was given", remedy: passwordRemedy)
    }
    if says("could not translate host name") {
      return BackendProblem(
        .noRoute, "the host of \(address.shown) has no address: its name is not known here",
        remedy: "Look at the name, and whether this machine has a name server in reach.")
    }
    if says("connection refused", "no such file or directory", "connection reset", "server closed") {
      return BackendProblem(
        .refused, "nothing takes connections at \(address.shown)",
        remedy: "Look whether PostgreSQL runs there, at this port.")
    }
    return BackendProblem(
      .noRoute, "\(address.shown) cannot be reached: \(words)", remedy: "Look whether this machine has a way to it.")
  }

  private static let passwordRemedy =
    "It is taken from the address, else from PGPASSWORD, else from forward.password in the data directory (readable by its owner "
    + "alone), else from the file that PGPASSFILE names: put the right one into the first of these that is there."

  private static func tls(_ words: String, _ address: PostgreSQLAddress) -> BackendProblem {
    let kind = words.lowercased()
    if kind.contains("does not support ssl") {
      return BackendProblem(
        .tls, "the server at \(address.shown) does not speak TLS, which the address asks for",
        remedy: "Turn ssl on at the server. Where the way to it is safe without, say sslmode=disable in the address.")
    }
    if kind.contains("does not match host name") {
      return BackendProblem(
        .tls, "the certificate of the server is for another name than that in \(address.shown)",
        remedy: "Use the name that the certificate has, or have one made for this name.")
    }
    if kind.contains("root certificate file"), kind.contains("does not exist") {
      return BackendProblem(
        .tls, "there is no root certificate to verify the server at \(address.shown) with",
        remedy: "Name the file with sslrootcert=FILE in the address, or put it at ~/.postgresql/root.crt.")
    }
    if kind.contains("verify failed") {
      return BackendProblem(
        .tls, "the certificate of the server at \(address.shown) was not signed by the root that is trusted here",
        remedy: "Name the right one with sslrootcert=FILE in the address.")
    }
    return BackendProblem(.tls, "no secure connection to \(address.shown): \(words)")
  }

  /// A server that refused, by its code.
  static func answered(_ state: String, _ words: String, _ address: PostgreSQLAddress) -> BackendProblem {
    switch state {
    case "28P01":
      return BackendProblem(.auth, "the password for \(address.shown) is wrong", remedy: passwordRemedy)
    case "28000":
      return BackendProblem(
        .auth, "\(address.shown) does not let this role in: \(words)",
        remedy: "Look at the role, and at pg_hba.conf there.")
    case "3D000":
      return BackendProblem(
        .schema, "there is no database of the name in \(address.shown)", remedy: "Make it: createdb.")
    case "42501":
      return BackendProblem(
        .schema, "the role of \(address.shown) lacks a right: \(words)",
        remedy: "As the owner of the tables: seamesh forward --set-up --grant-to=ROLE.", isLackOfRight: true)
    case "3F000", "42883", "42P01", "42703", "42704":
      return BackendProblem(
        .schema, "the tables of the ledger are not as they should be in \(address.shown): \(words)",
        remedy: "As their owner: seamesh forward --set-up.")
    case LedgerState.otherFleet:
      return BackendProblem(
        .schema, "the tables in \(address.shown) belong to another fleet", remedy: "Use another database for this one.")
    case LedgerState.otherLedger:
      return BackendProblem(.gap, "the ledger in \(address.shown) was replaced by another one while it was written to")
    case LedgerState.gap:
      return BackendProblem(
        .gap, "the ledger in \(address.shown) lacks what it had: it may have been put back from a copy",
        isOfRow: words.contains("a run without") || words.contains("a mark without"))
    case LedgerState.copy:
      return BackendProblem(
        .refused, "a copy of this device forwards to \(address.shown), and was there \(words) seconds ago",
        remedy: "Two machines have one device's key: end one of them, or let it join anew with a code of its own. "
          + "This one goes on once the other has been silent, at the latest after 20 minutes.")
    case LedgerState.readOnly:
      return BackendProblem(
        .refused, "the server at \(address.shown) takes no changes: it follows another one, or is set to be read only",
        remedy: "Name the server that takes them, or look at default_transaction_read_only there.")
    case "57014", "55P03":
      return BackendProblem(
        .refused, "the server at \(address.shown) ended what it was asked to do: \(words)",
        remedy: "Where statement_timeout or lock_timeout is set for this role, make it longer: two minutes will do.",
        isLackOfTime: state == "57014")
    case "53100":
      return BackendProblem(.refused, "the disk of the server at \(address.shown) is full", remedy: "Make room there.")
    default: break
    }
    // Classes of codes: data that cannot stand, constraints, limits, an exception of a trigger.
    if ["22", "23", "44", "54", "P0"].contains(where: { state.hasPrefix($0) }) {
      return BackendProblem(.rejected, words, remedy: "Look at what was changed on the tables.")
    }
    return BackendProblem(.refused, "the server at \(address.shown) refuses: \(words)")
  }

  /// Characters of what a server says.
  static let wordLimit = 512

  /// The first sentence, without the parts that are for programmers.
  static func sentence(_ message: String, _ address: PostgreSQLAddress) -> String {
    let line = message.split(separator: "\n").first.map(String.init) ?? "no reason was given"
    var words = address.redacted(line)
    if let state = sqlState(in: words), let range = words.firstRange(of: state + ": ") {
      words = String(words[range.upperBound...])
    } else if let range = words.firstRange(of: " failed: ") {
      words = String(words[range.upperBound...])
    }
    for mark in ["FATAL: ", "ERROR: "] where words.hasPrefix(mark) { words.removeFirst(mark.count) }
    while words.hasPrefix(" ") { words.removeFirst() }
    // A trigger of somebody's may say whole rows, for each of thousands of them.
    return words.count > wordLimit ? words.prefix(wordLimit) + "…" : words
  }

  /// Five capitals or digits after the severity, as verbose messages have them.
  static func sqlState(in message: String) -> String? {
    for part in message.split(separator: ":").map({ $0.drop { $0 == " " } }) {
      let isCode =
        part.utf8.count == 5 && part.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x5a).contains($0) }
      // FATAL and ERROR have five letters too.
      if isCode, part != "FATAL", part != "ERROR", part != "PANIC" { return String(part) }
    }
    return nil
  }
}

/// Codes with which the ledger's own functions refuse.
enum LedgerState {
  static let otherFleet = "SM001"
  static let otherLedger = "SM002"
  static let gap = "SM003"
  /// PostgreSQL's own.
  static let readOnly = "25006"
  /// The words are how many seconds ago the other one was there.
  static let copy = "SM004"
}
