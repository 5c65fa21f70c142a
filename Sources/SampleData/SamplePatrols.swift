import Replication

/// The course of events: time goes on, officers begin shifts, and board vessels.
struct SamplePatrols: Sendable {
  struct Step: Sendable {
    let report: SampleDocument
    /// Going on duty and off duty again, where a shift began that nobody has seen yet.
    let newShift: [SampleDocument]?
  }

  private struct Shift: Sendable {
    let officer: Int
    let start: Int64
    let end: Int64
  }

  private static let minute: Int64 = 60_000
  /// 2020-01-01T00:00:00Z.
  private static let start: Int64 = 1_577_836_800_000

  private var random: SampleRandom
  private let world: SampleWorld
  private var ids: SampleObjectIDs
  private var dutyIDs: SampleObjectIDs
  private var now = SamplePatrols.start
  /// The last shift of each agency.
  private var shifts: [Shift?]

  init(seed: UInt64) {
    random = SampleRandom(seed: seed)
    world = SampleWorld(&random)
    ids = SampleObjectIDs(&random)
    dutyIDs = SampleObjectIDs(&random)
    shifts = SampleWords.agencies.map { _ in nil }
  }

  mutating func next() -> Step {
    now += SamplePatrols.minute * Int64(random.within(2...38)) + Int64(random.below(1000))
    let agency = random.pickIndex(weights: SampleWords.agencies.map(\.weight))
    var newShift: [SampleDocument]?
    let officer: Int
    if !random.chance(percent: 85) {
      // Written off duty, as one in seven is.
      officer = random.below(SampleWorld.officersPerAgency)
    } else if let shift = shifts[agency], now < shift.start + 240 * SamplePatrols.minute {
      officer = shift.officer
    } else {
      let shift = beginShift()
      shifts[agency] = shift
      newShift = entries(of: shift, agency)
      officer = shift.officer
    }
    var builder = SampleReportBuilder(random: random, world: world, ids: ids, now: now)
    let report = builder.build(agency: SampleWords.agencies[agency].name, officer: world.officers[agency][officer])
    (random, ids) = (builder.random, builder.ids)
    return Step(report: report, newShift: newShift)
  }

  private mutating func beginShift() -> Shift {
    let start = now - SamplePatrols.minute * Int64(random.within(4...239))
    let hours = random.within(4...11)
    return Shift(
      officer: random.below(SampleWorld.officersPerAgency), start: start,
      end: start + Int64(hours * 60 + random.below(60)) * SamplePatrols.minute)
  }

  private mutating func entries(of shift: Shift, _ agency: Int) -> [SampleDocument] {
    [("On Duty", shift.start), ("Off Duty", shift.end)].map { status, time in
      let name = SampleWords.agencies[agency].name
      let body = sampleMap([
        "agency": .string(name), "user": world.officers[agency][shift.officer].value, "date": .date(time),
        "status": text(status),
      ])
      return SampleDocument(agency: name, id: .objectID(dutyIDs.next(milliseconds: time)), body: body)
    }
  }
}
