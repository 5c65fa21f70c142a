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
    report.losses = losses.prefix(WipeSurvey.partitionLimit).map { loss($0, survey, rules, authority) }
    (report.evidence, report.uncounted) = witnesses(survey, rules, authority)
    if !survey.losses.isEmpty { report.obstacles += standingObstacles(rules, authority) }
    if survey.hasFailed { report.obstacles.append("the store has failed; seamesh doctor says how") }
    do {
      let aside = try FilesSetAside(files.directory.path)
      report.obstacles += aside.stores.map {
        "\($0) is the store from before a restore: what is there alone would be lost; delete it when nothing of it is missed"
      }
      report.asideFiles = try asideFiles(aside.records)
    } catch {
      report.obstacles.append("\(files.directory.path) cannot be read, where records may lie that were put aside")
    }
    if DirectoryContents(files.directory.path).present.contains(.rootKey) {
      report.notes.append(
        "the fleet's root key lies here (\(KeyFile.fleetRoot.rawValue)): without a copy of it no admin can be made any more"
      )
    }
    report.isSafe = survey.isSafe && report.asideFiles.isEmpty && report.obstacles.isEmpty
    return report
  }

  /// Why no waiting will make it yes, where something would be lost.
  private func standingObstacles(_ rules: WipeRules, _ authority: Authority) -> [String] {
    let own = files.deviceKey.publicKey
    guard !authority.isEnded(own) else {
      let ends = PermissionDesk(authority: authority, device: own, arrivals: [:]).ends(of: own)
      return [
        "this device is no member any more, \(ends.map(\.endSentence).joined(separator: " and ")): nobody tells it what he holds, so "
          + "that waiting makes no yes of this; keep a seamesh backup of it until an admin has seen on another device what of "
          + "it arrived there"
      ]
    }
    let others = Set(authority.allMembers.lazy.map(\.device)).count { $0 != own && !authority.isEnded($0) }
    guard others < rules.devices else { return [] }
    guard others > 0 else {
      return [
        "this device is alone in its fleet: only a backend, or a device that joins (seamesh invite), makes a yes of this"
      ]
    }
    return [
      "the fleet has \(others) other device\(others == 1 ? "" : "s"), and \(rules.devices) are asked for: only the backend, a device "
        + "that joins, or to ask for fewer (--holders=\(others)) makes a yes of this"
    ]
  }

  private func loss(
    _ judgement: WipeJudgement, _ survey: WipeSurvey, _ rules: WipeRules, _ authority: Authority
  ) -> WipeReport.Loss {
    var loss = WipeReport.Loss()
    (loss.partition, loss.changes, loss.apart) = (judgement.name.text.string, judgement.lost, judgement.lostApart)
    let takers = WipeTakers(judgement, survey, rules)
    loss.reachable = takers.lacking.map { WipeDesk.label($0, authority) }
    loss.holders = takers.holding.map { WipeDesk.label($0, authority) }
    loss.hindrances = takers.hindrances { WipeDesk.label($0, authority) }
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
    witness.role = authority.role(of: key.device).string
    witness.isSelf = key.device == files.deviceKey.publicKey
    (witness.isOfBackend, witness.flaw) = (key.isOfBackend, key.flaw)
    return witness
  }

  // MARK: What was put aside

  private func asideFiles(_ paths: [String]) throws -> [WipeReport.AsideFile] {
    try paths.map { path in
      let content = try FileStart.content(of: path, atMost: WipeLimits.asideBytes)
      return WipeReport.AsideFile(path: path, records: content.count { $0 == UInt8(ascii: "\n") })
    }
  }
}
