@testable import SeameshCommand

/// The testing library has a type of the same name.
typealias CommandStatus = ExitStatus
