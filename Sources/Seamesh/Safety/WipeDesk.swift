import Engine
import Glibc
import Identity
import Kernel
import Replication
import Storage
import Transport

/// What would be lost with this directory.
struct WipeDesk {
  let engine: EngineLine
  let files: NodeFiles
  let authority: CurrentAuthority

  /// Whether everything that is here is known to be elsewhere. `asking`: peers in reach are asked first what they hold of what
  /// would be lost, for a moment.
  func report(_ rules: WipeRules, asking: Bool) throws(NodeError) -> WipeReport {
    let survey = try engine.ask { engine in
      let survey = engine.wipeSurvey(rules)
      let lost = survey.losses.map(\.name)
      if asking, !lost.isEmpty { engine.askForHoldings(of: lost) }
      return survey
    }
    guard asking, !survey.judgements.allSatisfy(\.isSafe) else { return try report(survey, rules) }
    let deadline = ElapsedClock.now().advanced(byMilliseconds: ReadLimits.receiptMilliseconds)
    while true {
      usleep(WipeDesk.wipePauseMicroseconds)
      let survey = try engine.ask { $0.wipeSurvey(rules) }
      guard survey.isSafe || ElapsedClock.now() >= deadline else { continue }
      return try report(survey, rules)
    }
  }

  private static let wipePauseMicroseconds: UInt32 = 100_000

  private func report(_ survey: WipeSurvey, _ rules: WipeRules) throws(NodeError) -> WipeReport {
    let authority = authority.now
    var report = WipeReport()
    report.rules = rules
    (report.changes, report.partitions) = (survey.judgements.reduce(0) { $0 + $1.changes }, survey.judgements.count)
    let losses = survey.losses
    (report.lostPartitions, report.lostChanges) = (losses.count, losses.reduce(0) { $0 + $1.lost })
    var onceElsewhere = rules
    onceElsewhere.devices = 1
    report.nowhereChanges = survey.holdings.reduce(0) { $0 + WipeJudgement($1, onceElsewhere).lost }
    report.losses = losses.prefix(WipeSurvey.partitionLimit).map { loss($0, survey, authority) }
    (report.evidence, report.uncounted) = witnesses(survey, rules, authority)
    if survey.hasFailed { report.obstacles.append("the store has failed; seamesh doctor says how") }
    do {
      report.asideFiles = try asideFiles()
    } catch {
      report.obstacles.append("\(files.directory.path) cannot be read, where records may lie that were put aside")
    }
    report.obstacles += storesSetAside().map {
      "\($0) is the store from before a restore: what is there alone would be lost; delete it when nothing of it is missed"
    }
    if DirectoryContents(files.directory.path).present.contains(.rootKey) {
      report.notes.append(
        "the fleet's root key lies here (\(KeyFile.fleetRoot.rawValue)): without a copy of it no admin can be made any more"
      )
    }
    report.isSafe = survey.isSafe && report.asideFiles.isEmpty && report.obstacles.isEmpty
    return report
  }

  private func loss(_ judgement: WipeJudgement, _ survey: WipeSurvey, _ authority: Authority) -> WipeReport.Loss {
    var loss = WipeReport.Loss()
    (loss.partition, loss.changes, loss.apart) = (judgement.name.text.string, judgement.lost, judgement.lostApart)
    loss.reachable = (survey.hearers[judgement.partition] ?? []).map { WipeDesk.label($0, authority) }
    guard authority.level(of: files.deviceKey.publicKey, in: judgement.name) >= .read else { return loss }
    loss.documents = (survey.documents[judgement.partition] ?? []).compactMap { key in
      Value(canonicalID: key.id).map { WipeReport.Document(collection: key.collection.string, id: $0) }
    }
    return loss
  }

  private static func label(_ device: PublicKey, _ authority: Authority) -> String {
    authority.member(of: device)?.membership.label.string ?? DeviceID(device).text
  }

  // MARK: Whose word it is

  private struct WitnessKey: Hashable {
    let device: PublicKey
    let isOfBackend: Bool
    let flaw: String
  }

  /// Who counts, and who does not, over all partitions. This device's own words are of no interest.
  private func witnesses(
    _ survey: WipeSurvey, _ rules: WipeRules, _ authority: Authority
  ) -> ([WipeReport.Witness], [WipeReport.Witness]) {
    var found: [WitnessKey: WipeReport.Witness] = [:]
    for word in survey.holdings.lazy.flatMap(\.words) where word.reaches.contains(where: { $0.value > 0 }) {
      let device: PublicKey
      switch word.speaker {
      case .own: continue
      case .ownReading: device = files.deviceKey.publicKey
      case .other(let other, _): device = other
      }
      let key = WitnessKey(
        device: device, isOfBackend: word.kind == .backend, flaw: word.flaw(rules)?.rawValue ?? "")
      var witness = found[key] ?? witness(key, authority)
      witness.ageMilliseconds =
        witness.partitions == 0 ? word.age : word.age.flatMap { age in witness.ageMilliseconds.map { max($0, age) } }
      witness.partitions += 1
      found[key] = witness
    }
    let all = found.values.sorted { ($0.label, $0.device, $0.flaw) < ($1.label, $1.device, $1.flaw) }
    return (all.filter { $0.flaw.isEmpty }, all.filter { !$0.flaw.isEmpty })
  }

  private func witness(_ key: WitnessKey, _ authority: Authority) -> WipeReport.Witness {
    var witness = WipeReport.Witness()
    (witness.device, witness.label) = (DeviceID(key.device).text, WipeDesk.label(key.device, authority))
    witness.role = authority.member(of: key.device)?.membership.role.string ?? ""
    witness.isSelf = key.device == files.deviceKey.publicKey
    (witness.isOfBackend, witness.flaw) = (key.isOfBackend, key.flaw)
    return witness
  }

  // MARK: What was put aside

  /// Their paths; what cannot be looked for is told with ``asideFiles()``.
  private func storesSetAside() -> [String] {
    let directory = files.directory.path
    return ((try? DirectoryNames.of(directory)) ?? []).sorted().filter { name in
      name.hasPrefix(NodeSetup.setAsidePrefix) && !name.hasSuffix("-wal") && !name.hasSuffix("-shm")
    }.map { directory + "/" + $0 }
  }

  private func asideFiles() throws -> [WipeReport.AsideFile] {
    let directory = files.directory.path
    return try DirectoryNames.of(directory).sorted().compactMap { name in
      guard name.hasPrefix(WipeLimits.asidePrefix) else { return nil }
      let path = directory + "/" + name
      let content = try FileStart.content(of: path, atMost: WipeLimits.asideBytes)
      return content.isEmpty
        ? nil : WipeReport.AsideFile(path: path, records: content.count { $0 == UInt8(ascii: "\n") })
    }
  }
}
