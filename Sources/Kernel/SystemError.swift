import Glibc

/// A failed system call: which one, and its `errno`.
package struct SystemError: Error, Equatable, Sendable, CustomStringConvertible {
  package let operation: String
  package let code: Int32

  package init(_ operation: String, code: Int32 = errno) { (self.operation, self.code) = (operation, code) }

  package var description: String { "\(operation): \(SystemError.text(of: code))" }

  private static func text(of code: Int32) -> String {
    guard let text = strerror(code) else { return "error \(code)" }
    return String(cString: text)
  }
}
