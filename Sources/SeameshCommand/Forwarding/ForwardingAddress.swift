import Forwarding
import Glibc
import Identity

let forwardOption = OptionSpecification(
  "forward", .text("URL"), "bring everything that this node holds to the PostgreSQL server at URL", configurable: true)

/// In the data directory: the password of the backend's role, on its first line.
let passwordFileName = "forward.password"

/// A backend that was named, and its password where that does not stand in its address.
struct NamedBackend: Sendable {
  let address: PostgreSQLAddress
  let password: PasswordSource

  /// With the password as it is now.
  func withPassword() throws(Failure) -> PostgreSQLAddress {
    do throws(BackendProblem) {
      return address.withPassword(try password())
    } catch {
      throw Failure(.failed, error.sentence)
    }
  }
}

/// The backend that was named; nil where none was. A password that is there and cannot be used is told at once.
func namedBackend(
  _ invocation: Invocation, _ option: String = "forward", directory: String
) throws(Failure) -> NamedBackend? {
  guard let url = invocation[option] else { return nil }
  let address: PostgreSQLAddress
  do throws(BackendProblem) {
    address = try PostgreSQLAddress(url: url)
  } catch {
    throw .usage("--\(option): \(error.sentence)")
  }
  let configured = try configuredBackend(directory)
  if address.hasPassword, configured == url { try requirePrivateConfiguration(directory) }
  let backend = NamedBackend(address: address, password: passwordSource(address, configured, directory))
  _ = try backend.withPassword()
  return backend
}

/// What `seamesh.json` names.
func configuredBackend(_ directory: String) throws(Failure) -> String? {
  try ConfigurationFile(directory: directory, verbs: verbTable).options(of: runVerb)["forward"]?.last
}

/// What somebody says for one command goes before what lies in a file: the address, then `PGPASSWORD`, then `forward.password`. That
/// is the password of the backend in `seamesh.json`, where one is named there, and of no other.
private func passwordSource(
  _ address: PostgreSQLAddress, _ configured: String?, _ directory: String
) -> PasswordSource {
  let isOwn = configured.map { (try? PostgreSQLAddress(url: $0))?.shown == address.shown } ?? true
  let isGiven = environment()["PGPASSWORD"]?.isEmpty == false
  guard isOwn, !isGiven, !address.hasPassword else { return { () throws(BackendProblem) in nil } }
  let path = directory + "/" + passwordFileName
  return { () throws(BackendProblem) in try storedPassword(path) }
}

private func storedPassword(_ path: String) throws(BackendProblem) -> String? {
  guard access(path, F_OK) == 0 else { return nil }
  do throws(FileError) {
    let content = String(decoding: try PrivateFile.content(of: path), as: UTF8.self)
    return content.split(separator: "\n", omittingEmptySubsequences: false).first.map(String.init)
  } catch {
    throw BackendProblem(.auth, "the password of the backend is not read: \(error)")
  }
}

/// A password that stands in the configuration file is as secret as the file.
private func requirePrivateConfiguration(_ directory: String) throws(Failure) {
  let path = directory + "/" + ConfigurationFile.fileName
  var facts = stat()
  guard stat(path, &facts) == 0, facts.st_mode & 0o077 != 0 else { return }
  throw Failure(.failed, "\(path) has the password of the backend in it, and others can read it: chmod 600 \(path)")
}
