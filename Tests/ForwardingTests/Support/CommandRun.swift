import Foundation

struct CommandResult {
  let status: Int32
  let output: String
  let error: String
}

/// The command beside the tests, with a directory of its own as data and home.
func runCommand(
  _ arguments: [String], in directory: String, _ environment: [String: String] = [:]
) throws -> CommandResult {
  let process = command(arguments, in: directory, environment)
  let (output, error) = (Pipe(), Pipe())
  (process.standardOutput, process.standardError) = (output, error)
  try process.run()
  let said = output.fileHandleForReading.readDataToEndOfFile()
  let complained = error.fileHandleForReading.readDataToEndOfFile()
  process.waitUntilExit()
  return CommandResult(
    status: process.terminationStatus, output: String(decoding: said, as: UTF8.self),
    error: String(decoding: complained, as: UTF8.self))
}

/// The same, left to run with nothing heard of it.
func startCommand(
  _ arguments: [String], in directory: String, _ environment: [String: String] = [:]
) throws -> Process {
  let process = command(arguments, in: directory, environment)
  (process.standardOutput, process.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
  try process.run()
  return process
}

private func command(_ arguments: [String], in directory: String, _ environment: [String: String]) -> Process {
  let process = Process()
  process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
    .appendingPathComponent("seamesh")
  process.arguments = arguments + ["--data=\(directory)"]
  process.environment = ["PATH": "/usr/bin:/bin", "HOME": directory].merging(environment) { $1 }
  return process
}
