/// Builds beside this one, by which tests show how builds get on in one fleet: an earlier one lacks some of what this one
/// knows, a later one uses what has no meaning yet. In the simulator by `BuildMix`, in a real node by `TestBuildSwitch`.
package enum TestBuild: String, Sendable, CaseIterable {
  case earlier
  case later

  package static let codec = PayloadCodec(rawValue: 200)
  package static let critical = ChangeExtension(type: 0x9000, content: [1])
  package static let informative = ChangeExtension(type: 7, content: [2])

  package var formats: KnownFormats {
    var formats = KnownFormats.all
    switch self {
    case .earlier:
      formats.statementKinds.remove(.rule)
      formats.grantSubjects.remove(.user)
      formats.features = 0
    case .later:
      (formats.codecs, formats.criticalExtensions) = ([TestBuild.codec], [TestBuild.critical.type])
      (formats.messages, formats.features, formats.news) = ([40], formats.features | 1 << 20, [70, 40])
      formats.written = [
        .init(), .init(extensions: [TestBuild.informative]), .init(), .init(), .init(codec: TestBuild.codec), .init(),
        .init(extensions: [TestBuild.critical]),
      ]
    }
    return formats
  }
}
