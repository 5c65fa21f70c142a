import Forwarding
import Glibc
import Identity

let forwardOption = OptionSpecification(
  "forward", .text("URL"), "bring everything that this node holds to the PostgreSQL server at URL", configurable: true)

/// In the data directory: the password of the backend's role, on its first line.
let passwordFileName = "forward.password"

/// The backend that was named, with its password where that lies in the data directory; nil where none was named.
func forwardingAddress(
  _ invocation: Invocation, _ option: String = "forward", directory: String
) throws(Failure) -> PostgreSQLAddress? {
  guard let url = invocation[option] else { return nil }
  let address: PostgreSQLAddress
  do throws(BackendProblem) {
    address = try PostgreSQLAddress(url: url)
  } catch {
    throw .usage("--\(option): \(error.sentence)")
  }
  if address.hasPassword { try requirePrivateConfiguration(directory) }
  return address.withPassword(try storedPassword(directory))
}

private func storedPassword(_ directory: String) throws(Failure) -> String? {
  let path = directory + "/" + passwordFileName
  guard access(path, F_OK) == 0 else { return nil }
  do throws(FileError) {
    let content = String(decoding: try PrivateFile.content(of: path), as: UTF8.self)
    return content.split(separator: "\n", omittingEmptySubsequences: false).first.map(String.init)
  } catch {
    throw Failure(.failed, "the password of the backend is not read: \(error)")
  }
}

/// A password that stands in the configuration file is as secret as the file.
private func requirePrivateConfiguration(_ directory: String) throws(Failure) {
  let path = directory + "/" + ConfigurationFile.fileName
  var facts = stat()
  guard stat(path, &facts) == 0, facts.st_mode & 0o077 != 0 else { return }
  let named = try ConfigurationFile(directory: directory, verbs: verbTable).options(of: runVerb)["forward"]
  guard named != nil else { return }
  throw Failure(.failed, "\(path) has the password of the backend in it, and others can read it: chmod 600 \(path)")
}
