import CPostgreSQL

/// The password of a backend's role where its address has none: read for each connection anew, so that a changed one counts
/// without a restart. Nil: libpq looks where it looks by itself, in `PGPASSWORD` and the file that `PGPASSFILE` names.
package typealias PasswordSource = @Sendable () throws(BackendProblem) -> String?

/// Where a PostgreSQL server is and how it is spoken with, from a URL that a person wrote. Nothing of it that is shown has a
/// secret: not the password, and not the URL itself, which may have one anywhere.
package struct PostgreSQLAddress: Equatable, Sendable {
  /// As libpq names them.
  let parameters: [String: String]

  static let schemes = ["postgresql://", "postgres://"]

  package init(url: String) throws(BackendProblem) {
    guard PostgreSQLAddress.schemes.contains(where: { url.hasPrefix($0) }) else {
      throw BackendProblem(
        .refused, "a backend is named as postgresql://USER@HOST/DATABASE; nothing else can be forwarded to",
        remedy: "Give the address of a PostgreSQL server.")
    }
    // libpq's own message would repeat what it could not read, perhaps the password.
    guard let options = PQconninfoParse(url, nil) else {
      throw BackendProblem(
        .refused, "the address of the backend cannot be read; it is written as postgresql://USER@HOST:PORT/DATABASE",
        remedy: "Percent-encode what has a special meaning in it, and look at the names behind the question mark.")
    }
    defer { PQconninfoFree(options) }
    var parameters: [String: String] = [:]
    var option = options
    while let keyword = option.pointee.keyword {
      if let value = option.pointee.val { parameters[String(cString: keyword)] = String(cString: value) }
      option += 1
    }
    self.parameters = parameters
  }

  init(parameters: [String: String]) { self.parameters = parameters }

  /// For people.
  package var shown: String {
    var text = "postgresql://"
    if let user = parameters["user"] { text += user + "@" }
    text += parameters["host"] ?? parameters["hostaddr"] ?? "localhost"
    if let port = parameters["port"] { text += ":" + port }
    return text + "/" + (parameters["dbname"] ?? "")
  }

  package var hasPassword: Bool { parameters["password"] != nil }

  /// With a password that stands elsewhere, unless the URL has one.
  package func withPassword(_ password: String?) -> PostgreSQLAddress {
    guard let password, !hasPassword else { return self }
    return PostgreSQLAddress(parameters: parameters.merging(["password": password]) { own, _ in own })
  }

  /// Through a socket of this machine, where nothing else can listen.
  private var isLocal: Bool { parameters["host"]?.hasPrefix("/") ?? (parameters["hostaddr"] == nil) }

  /// All that libpq is told. The server's name is verified unless whoever wrote the address, or the environment, says otherwise.
  func connectionParameters(environment: [String: String]) -> [String: String] {
    var all = [
      "application_name": "seamesh", "client_encoding": "UTF8", "connect_timeout": "15", "keepalives_idle": "30",
      "keepalives_interval": "10", "keepalives_count": "3", "tcp_user_timeout": "60000",
    ]
    if environment["PGSSLMODE"] == nil, !isLocal { all["sslmode"] = "verify-full" }
    return all.merging(parameters) { _, written in written }
  }

  /// Words of a server or of libpq, with nothing secret left in them.
  func redacted(_ text: String) -> String {
    guard let password = parameters["password"], !password.isEmpty else { return text }
    return text.replacing(password, with: "…")
  }
}
