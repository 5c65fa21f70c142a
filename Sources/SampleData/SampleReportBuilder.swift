import Replication

/// Fills in one report.
struct SampleReportBuilder {
  var random: SampleRandom
  let world: SampleWorld
  var ids: SampleObjectIDs
  /// Milliseconds since 1970.
  let now: Int64

  private typealias Person = (name: String, license: String)

  mutating func build(agency: Text, officer: SampleWorld.Officer) -> SampleDocument {
    let id = ids.next(milliseconds: now)
    let vessel = world.vessel(&random)
    let captain = person()
    let crew = (0..<random.streak(percent: 73, limit: 12)).map { _ in person() }
    var body = sampleMap([
      "agency": .string(agency), "draft": .bool(random.chance(percent: 8)), "reportingOfficer": officer.value,
      "timestamp": .date(now), "date": .date(now - 60_000 * random.pick([0, 0, 1, 3, 15, 1440])),
      "location": location(vessel), "vessel": .map(boat(vessel)), "captain": crewMember(captain),
      "crew": .array(crew.map { crewMember($0) }), "notes": .array(annotatedNotes()),
    ])
    body["inspection"] = .map(inspection([captain] + crew))
    if random.below(1000) < 55 { makeOdd(&body) }
    return SampleDocument(agency: agency, id: .objectID(id), body: body)
  }

  // MARK: People

  private mutating func person() -> Person {
    let license =
      random.chance(percent: 50) ? "" : random.chance(percent: 60) ? random.digits(7) : "P-" + random.digits(5)
    return (random.pick(SampleWords.firstNames) + " " + random.pick(SampleWords.lastNames), license)
  }

  private mutating func crewMember(_ person: Person) -> Value {
    .map(
      sampleMap(["name": text(person.name), "license": text(person.license), "attachments": attachments(percent: 17)]))
  }

  // MARK: Vessel

  private mutating func location(_ vessel: SampleWorld.Vessel) -> Value {
    let ground = SampleWords.grounds[vessel.ground]
    // Whole numbers first, so that the text of the number is as short as a position's is.
    func coordinate(_ origin: Double, _ extent: Double, _ fraction: Double) -> Value {
      .double(((origin + extent * fraction) * 100_000).rounded() / 100_000)
    }
    return .array([
      coordinate(ground.west, ground.width, random.fraction()),
      coordinate(ground.south, ground.height, random.fraction()),
    ])
  }

  private mutating func boat(_ vessel: SampleWorld.Vessel) -> ValueMap {
    var boat = sampleMap([
      "name": text(vessel.name), "homePort": text(vessel.homePort), "nationality": text(vessel.nationality),
      "permitNumber": text(vessel.permit), "attachments": attachments(percent: 30),
      "ems": .array((0..<random.below(3)).map { _ in electronicMonitoring() }),
    ])
    if !random.chance(percent: 20) { boat["lastDelivery"] = delivery() }
    return boat
  }

  private mutating func electronicMonitoring() -> Value {
    .map(
      sampleMap([
        "emsType": text(random.pick(SampleWords.emsTypes)), "registryNumber": text(random.digits(9)),
        "emsDescription": text(random.pick(SampleWords.emsDescriptions)), "attachments": attachments(percent: 17),
      ]))
  }

  private mutating func delivery() -> Value {
    let day: Int64 = 86_400_000
    // Not filled in: the date that apps begin with.
    let date = random.chance(percent: 15) ? 0 : (now / day - Int64(random.within(5...60))) * day
    return .map(
      sampleMap([
        "date": .date(date), "location": text(random.pick(SampleWords.ports)),
        "business": text(random.pick(SampleWords.businesses)), "attachments": attachments(percent: 17),
      ]))
  }

  // MARK: Inspection

  private mutating func inspection(_ people: [Person]) -> ValueMap {
    let count = random.pickIndex(weights: [30, 24, 23, 14, 6, 3])
    let violations = (0..<count).map { _ in violation(people) }
    let summary = sampleMap([
      "safetyLevel": safetyLevel(hasViolations: count > 0), "violations": .array(violations),
      "seizures": .map(
        sampleMap(["text": text(random.pick(SampleWords.seizures)), "attachments": attachments(percent: 17)])),
    ])
    return sampleMap([
      "activity": named(SampleWords.activities), "fishery": named(SampleWords.fisheries),
      "gearType": named(SampleWords.gear), "summary": .map(summary), "attachments": attachments(percent: 24),
      "actualCatch": .array((0..<random.below(4)).map { _ in catchEntry() }),
    ])
  }

  private mutating func named(_ names: [String]) -> Value {
    .map(sampleMap(["name": text(random.pick(names)), "attachments": attachments(percent: 24)]))
  }

  private mutating func catchEntry() -> Value {
    let isCounted = random.chance(percent: 40)
    return .map(
      sampleMap([
        "fish": text(random.pick(SampleWords.species)), "number": .int(isCounted ? Int64(random.within(1...900)) : 0),
        "weight": .double(isCounted ? 0 : Double(random.within(5...50_000)) / 10),
        "unit": text(isCounted ? "" : random.pick(SampleWords.units)), "attachments": attachments(percent: 24),
      ]))
  }

  private mutating func violation(_ people: [Person]) -> Value {
    let (code, explanation) = random.pick(SampleWords.offences)
    return .map(
      sampleMap([
        "disposition": text(random.chance(percent: 60) ? "Warning" : "Citation"),
        "offence": .map(sampleMap(["code": text(code), "explanation": text(explanation)])),
        "crewMember": crewMember(random.pick(people)), "attachments": attachments(percent: 30),
      ]))
  }

  private mutating func safetyLevel(hasViolations: Bool) -> Value {
    let level = ["Green", "Amber", "Red"][random.pickIndex(weights: hasViolations ? [2, 4, 4] : [5, 2, 2])]
    let reason = level == "Amber" ? random.pick(SampleWords.amberReasons) : ""
    return .map(
      sampleMap(["level": text(level), "amberReason": text(reason), "attachments": attachments(percent: 24)]))
  }

  // MARK: Notes and photos

  private mutating func annotatedNotes() -> [Value] {
    (0..<random.below(4)).map { _ in
      .map(sampleMap(["note": remark(), "photoIDs": .array(photoIDs(percent: 30))]))
    }
  }

  /// One to three sentences.
  private mutating func remark() -> Value {
    text((0...random.below(3)).map { _ in random.pick(SampleWords.notes) }.joined(separator: ". "))
  }

  private mutating func attachments(percent: Int) -> Value {
    let hasAny = random.chance(percent: percent)
    return .map(
      sampleMap([
        "notes": .array((0..<(hasAny ? random.below(3) : 0)).map { _ in remark() }),
        "photoIDs": .array(hasAny ? photoIDs(percent: 100) : []),
      ]))
  }

  private mutating func photoIDs(percent: Int) -> [Value] {
    guard random.chance(percent: percent) else { return [] }
    return (0..<random.below(4)).map { _ in
      let digits = ids.next(milliseconds: now).bytes.map { byte in
        String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
      }
      return text(digits.joined())
    }
  }

  // MARK: What real collections also hold

  private mutating func makeOdd(_ body: inout ValueMap) {
    switch random.below(10) {
    case 0: body["draft"] = nil
    case 1: body["draft"] = .null
    case 2: body["location"] = .array([])
    case 3: change(&body, "vessel", "name", text(""))
    case 4: change(&body, "vessel", "permitNumber", text(""))
    case 5: change(&body, "vessel", "nationality", text("ZQ"))
    case 6:
      // One note as long as a page.
      let note = (0..<200).map { _ in random.pick(SampleWords.notes) }.joined(separator: ". ")
      if random.chance(percent: 20) {
        body["notes"] = .array([.map(sampleMap(["note": text(note), "photoIDs": .array([])]))])
      }
    case 7: body["captain"] = .null
    case 8: change(&body, "vessel", "lastDelivery", .null)
    // The crew list was emptied after the violations were noted.
    default: body["crew"] = .array([])
    }
  }

  private func change(_ body: inout ValueMap, _ outer: Text, _ inner: Text, _ value: Value) {
    guard case .map(var map)? = body[outer] else { return }
    map[inner] = value
    body[outer] = .map(map)
  }
}
