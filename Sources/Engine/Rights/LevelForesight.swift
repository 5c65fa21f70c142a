import Replication

/// What one device may do in one partition that is here, before and after a change of rights.
package struct LevelForecast: Sendable, Hashable {
  package let device: PublicKey
  package let before: AccessLevel
  package let after: AccessLevel
  /// What the level rests on afterwards; empty where there is none.
  package let reasons: [Digest]
}

/// Those in one partition whose level changes, or stays above what they are granted.
package struct PartitionForecast: Sendable {
  package let partition: PartitionName
  package let devices: [LevelForecast]
}

package struct LevelForesight: Sendable {
  /// By which the reasons are known, those among them that would be signed.
  package let authority: Authority
  /// In byte order of the names; only where there is anything to tell.
  package fileprivate(set) var partitions: [PartitionForecast] = []
  /// Partitions that were not looked at, for there are too many.
  package fileprivate(set) var untold = 0

  fileprivate init(_ authority: Authority) { self.authority = authority }
}

/// Works out on copies who may do what once statements count, on whatever thread asks: it may take longer than the engine should be
/// kept.
package struct LevelForecaster: Sendable {
  private let before: Authority
  private let after: Authority
  private let request: RightsRequest
  /// The partitions that are here.
  private let names: [PartitionName]
  /// So many devices are looked at, each once per partition.
  private static let lookLimit = 20_000

  fileprivate init(_ before: Authority, _ plan: RightsPlan, _ request: RightsRequest, _ names: [PartitionName]) {
    (self.before, after, self.request, self.names) = (before, plan.authority, request, names)
  }

  package var foresight: LevelForesight {
    var foresight = LevelForesight(after)
    let (names, devices) = (names.filter(reaches), devices)
    guard !devices.isEmpty else { return foresight }
    let looked = names.prefix(max(1, LevelForecaster.lookLimit / devices.count))
    foresight.untold = names.count - looked.count
    foresight.partitions = looked.compactMap { name in
      let told = devices.compactMap { forecast(of: $0, in: name) }
      return told.isEmpty ? nil : PartitionForecast(partition: name, devices: told)
    }
    return foresight
  }

  private var devices: [PublicKey] {
    switch request {
    case .grant(let subject, _, _): return after.devices(reachedBy: subject)
    case .promote(let device): return [device]
    // With whoever gave rights and let others in, what he gave and whom he let in may fall.
    case .end(let device, _, _): return before.hasDecided(device) ? everyone(first: device) : [device]
    // And comes again with him. What else is raised lets changes count and gives nobody anything.
    case .raise(let narrowings): return narrowings.contains(where: before.endsMembership) ? everyone() : []
    }
  }

  private func everyone(first device: PublicKey? = nil) -> [PublicKey] {
    let first = device.map { [$0] } ?? []
    return first + Set((before.allMembers + after.allMembers).map(\.device)).subtracting(first).sorted()
  }

  private func reaches(_ name: PartitionName) -> Bool {
    if case .grant(_, _, let pattern) = request { Statement.Grant.reaches(pattern, name) } else { true }
  }

  private func forecast(of device: PublicKey, in name: PartitionName) -> LevelForecast? {
    let (old, new) = (level(before, device, name), level(after, device, name))
    guard old != new || keepsMore(old) else { return nil }
    return LevelForecast(device: device, before: old, after: new, reasons: reasons(device, name, new))
  }

  /// Who asks for less than a device goes on to have should know by what it has it.
  private func keepsMore(_ level: AccessLevel) -> Bool {
    if case .grant(_, let granted, _) = request { level > granted && level >= .write } else { false }
  }

  /// Not as the tables keep it: what would be is asked for once, and they are of a bounded size.
  private func level(_ authority: Authority, _ device: PublicKey, _ name: PartitionName) -> AccessLevel {
    authority.members(of: device).map { authority.level(of: $0.id, in: name) }.max() ?? .none
  }

  private func reasons(_ device: PublicKey, _ name: PartitionName, _ level: AccessLevel) -> [Digest] {
    let listings = after.members(of: device).compactMap { after.permissions(of: $0.id, in: name) }
    return Set(listings.filter { $0.level == level }.flatMap(\.reasons).map(\.id)).sorted()
  }
}

extension NodeEngine {
  /// Works out who of the known devices could do what in the partitions that are here once a plan is carried out. Nil where it is so
  /// already.
  package func levels(after plan: RightsPlan, _ request: RightsRequest) -> LevelForecaster? {
    guard !plan.statements.isEmpty else { return nil }
    let names = state.mesh.partitions.values.map(\.name).sorted()
    return LevelForecaster(state.mesh.authority, plan, request, names)
  }
}
