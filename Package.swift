// swift-tools-version: 6.2
import PackageDescription

// The target graph is the architecture: Docs/ARCHITECTURE.md says what each target is for.

let strict: [SwiftSetting] = [
  .treatAllWarnings(as: .error),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

/// A release runs where no Swift is installed, and starts sooner. Its tests cannot: they are linked with the test library (decision 58).
let swiftInside: [LinkerSetting] =
  Context.environment["SEAMESH_SHARED_SWIFT"] == nil
  ? [.unsafeFlags(["-static-stdlib"], .when(platforms: [.linux], configuration: .release))] : []

func library(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
  .target(name: name, dependencies: dependencies, swiftSettings: strict)
}

func tests(_ name: String, _ dependencies: [Target.Dependency], exclude: [String] = []) -> Target {
  .testTarget(name: name, dependencies: dependencies, exclude: exclude, swiftSettings: strict)
}

let package = Package(
  name: "seamesh",
  platforms: [.macOS(.v15)],
  products: [
    .library(name: "Seamesh", targets: ["Seamesh"]),
    .executable(name: "seamesh", targets: ["SeameshCommand"]),
  ],
  targets: [
    .systemLibrary(name: "CDNSSD", providers: [.apt(["libavahi-compat-libdnssd-dev"])]),
    .systemLibrary(name: "CSQLite", providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite"])]),
    .systemLibrary(name: "COpenSSL", providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]),
    .systemLibrary(name: "CSodium", providers: [.apt(["libsodium-dev"]), .brew(["libsodium"])]),
    .systemLibrary(name: "CMicrohttpd", providers: [.apt(["libmicrohttpd-dev"]), .brew(["libmicrohttpd"])]),
    .systemLibrary(name: "CCurl", providers: [.apt(["libcurl4-openssl-dev"])]),
    .systemLibrary(name: "CQREncode", providers: [.apt(["libqrencode-dev"]), .brew(["qrencode"])]),
    .systemLibrary(
      name: "CPostgreSQL", pkgConfig: "libpq", providers: [.apt(["libpq-dev"]), .brew(["libpq"])]),
    .systemLibrary(name: "CUTF8Proc", providers: [.apt(["libutf8proc-dev"]), .brew(["utf8proc"])]),
    .systemLibrary(name: "CLinux"),

    library("Kernel", ["CLinux"]),
    library("Replication"),
    library("Wire", ["Replication"]),
    library(
      "Identity",
      ["Replication", "Wire", "COpenSSL", "CSodium", .target(name: "CLinux", condition: .when(platforms: [.linux]))]),
    library("Engine", ["Replication", "Wire"]),
    library("Storage", ["Kernel", "Replication", "Wire", "Engine", "CSQLite"]),
    library("SimulatedDisk", ["CSQLite"]),
    library("Links", ["Replication"]),
    library("Transport", ["Kernel", "Replication", "Wire", "Links", "CDNSSD", "COpenSSL", "CLinux"]),
    library(
      "Seamesh",
      ["Kernel", "Replication", "Wire", "Engine", "Identity", "Storage", "Links", "Transport", "CUTF8Proc"]),
    library("Forwarding", ["Kernel", "Replication", "Wire", "Engine", "Storage", "Links", "CPostgreSQL"]),
    library("LocalAPI", ["Kernel", "Seamesh", "Replication", "Wire", "CMicrohttpd", "CLinux"]),
    library("SampleData", ["Replication", "Wire"]),
    library("Simulation", ["Replication", "Wire", "Engine", "Links", "Storage", "Forwarding", "SimulatedDisk"]),
    .executableTarget(
      name: "SeameshCommand",
      dependencies: [
        "Seamesh", "LocalAPI", "Forwarding", "Simulation", "SampleData", "Replication", "Wire", "Engine", "Identity",
        "Storage", "Links", "Transport", "Kernel", "CSQLite", "CCurl", "CQREncode", "CLinux",
      ],
      swiftSettings: strict,
      linkerSettings: swiftInside),

    tests(
      "ReplicationTests", ["Replication", "Wire", "Engine", "Identity", "Simulation", "TestSupport"],
      exclude: ["Vectors"]),
    tests("WireTests", ["Wire", "Replication", "TestSupport"]),
    tests("IdentityTests", ["Identity", "Wire", "Replication", "TestSupport"]),
    tests(
      "StorageTests",
      ["Storage", "SimulatedDisk", "Engine", "Wire", "Replication", "Identity", "CSQLite", "TestSupport"]),
    .target(name: "TestSupport", path: "Tests/TestSupport", swiftSettings: strict),
    tests("LinksTests", ["Links", "Replication", "TestSupport"]),
    tests("TransportTests", ["Transport", "Links", "Wire", "Replication", "Identity", "TestSupport"]),
    .target(
      name: "LocalAPITestSupport", dependencies: ["Kernel", "Seamesh", "Replication"],
      path: "Tests/LocalAPITestSupport",
      swiftSettings: strict),
    tests("LocalAPITests", ["LocalAPI", "LocalAPITestSupport", "TestSupport", "Seamesh", "Wire", "Replication"]),
    tests(
      "SeameshCommandTests",
      [
        "SeameshCommand", "LocalAPI", "LocalAPITestSupport", "TestSupport", "Seamesh", "Links", "Storage", "Wire",
        "Replication",
      ]),
    tests(
      "SimulationTests",
      ["Simulation", "SimulatedDisk", "Storage", "Engine", "Replication", "Wire", "Identity", "TestSupport"]),
    tests(
      "SeameshTests",
      [
        "Seamesh", "SampleData", "Replication", "Wire", "Engine", "Identity", "Storage", "Links", "Transport", "Kernel",
        "TestSupport",
      ]),
    tests(
      "ForwardingTests",
      [
        "Forwarding", "SeameshCommand", "LocalAPI", "Seamesh", "Storage", "Engine", "Wire", "Replication", "Identity",
        "Links", "Transport", "CPostgreSQL", "TestSupport",
      ]),
    tests("LibraryTests", ["Seamesh"]),
    tests("SourceTests", []),
    tests("EngineTests", ["Engine", "Storage", "Wire", "Replication", "Identity", "CSQLite", "TestSupport"]),
  ],
  swiftLanguageModes: [.v6]
)
