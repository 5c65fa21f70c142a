import Foundation
import Testing

/// What a program links that embeds the library, by the package's own description.
@Suite("An embedding program")
struct EmbeddingTests {
  private struct Package: Decodable {
    struct Product: Decodable {
      let name: String
      let targets: [String]
    }

    struct Target: Decodable {
      let name: String
      let dependencies: [Dependency]
    }

    /// `{"byName":["Wire",null]}`, or under another key where there is a condition.
    struct Dependency: Decodable {
      let name: String

      init(from decoder: any Decoder) throws {
        let kinds = try decoder.singleValueContainer().decode([String: [Word]].self)
        guard let name = kinds.values.first?.first?.text else {
          throw DecodingError.dataCorrupted(
            .init(codingPath: decoder.codingPath, debugDescription: "it names no target"))
        }
        self.name = name
      }
    }

    /// A condition is an object, and of no interest.
    struct Word: Decodable {
      let text: String?
      init(from decoder: any Decoder) throws { text = try? decoder.singleValueContainer().decode(String.self) }
    }

    let products: [Product]
    let targets: [Target]

    /// All that a product is linked from.
    func targets(of product: String) -> Set<String> {
      let dependencies = Dictionary(targets.map { ($0.name, $0.dependencies.map(\.name)) }) { first, _ in first }
      var (found, rest): (Set<String>, [String]) = ([], products.filter { $0.name == product }.flatMap(\.targets))
      while let target = rest.popLast() {
        if found.insert(target).inserted { rest += dependencies[target] ?? [] }
      }
      return found
    }
  }

  /// With a scratch directory of its own: that of the build is taken while tests run.
  private func package() throws -> Package {
    let process = Process()
    let scratch = NSTemporaryDirectory() + "seamesh-package-" + UUID().uuidString.prefix(8)
    defer { try? FileManager.default.removeItem(atPath: scratch) }
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [
      "swift", "package", "--package-path", SourceTree.root.path, "--scratch-path", scratch, "dump-package",
    ]
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let text = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return try JSONDecoder().decode(Package.self, from: text)
  }

  @Test("links neither libpq nor what forwards, serves HTTP or speaks to people; the command links all of it")
  func links() throws {
    let package = try package()
    let (library, command) = (package.targets(of: "Seamesh"), package.targets(of: "seamesh"))
    #expect(library.isSuperset(of: ["Seamesh", "Engine", "CSQLite", "COpenSSL", "CLinux"]))
    let rest: Set = ["Forwarding", "CPostgreSQL", "LocalAPI", "CMicrohttpd", "CCurl", "CQREncode"]
    #expect(library.isDisjoint(with: rest), "\(library.intersection(rest).sorted())")
    #expect(command.isSuperset(of: rest))
  }
}
