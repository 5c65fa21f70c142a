import Replication

/// Who and what appears in the reports of one seed: officers by agency, and vessels.
struct SampleWorld: Sendable {
  struct Officer: Sendable {
    let email: Text
    let first: String
    let last: String

    var value: Value {
      .map(sampleMap(["email": .string(email), "name": .map(sampleMap(["first": text(first), "last": text(last)]))]))
    }
  }

  struct Vessel: Sendable {
    var name: String
    var permit: String
    let nationality: String
    let homePort: String
    let ground: Int
  }

  static let officersPerAgency = 14
  static let vesselCount = 260

  let officers: [[Officer]]
  let vessels: [Vessel]

  init(_ random: inout SampleRandom) {
    var officers: [[Officer]] = []
    for agency in SampleWords.agencies.indices {
      officers.append((0..<SampleWorld.officersPerAgency).map { SampleWorld.officer(agency, $0, &random) })
    }
    self.officers = officers
    var vessels: [Vessel] = []
    for index in 0..<SampleWorld.vesselCount {
      var vessel = SampleWorld.vessel(&random)
      // Some names belong to two vessels, some permits to a vessel that changed its name.
      if index % 23 == 22 { vessel.name = vessels[index - 20].name }
      if index % 37 == 36 { vessel.permit = vessels[index - 30].permit }
      vessels.append(vessel)
    }
    self.vessels = vessels
  }

  private static func officer(_ agency: Int, _ index: Int, _ random: inout SampleRandom) -> Officer {
    Officer(
      email: Text("officer\(agency * officersPerAgency + index + 1)@patrol.example"),
      first: random.pick(SampleWords.firstNames), last: random.pick(SampleWords.lastNames))
  }

  private static func vessel(_ random: inout SampleRandom) -> Vessel {
    let words = [random.pick(SampleWords.vesselFirst), random.pick(SampleWords.vesselSecond)]
    return Vessel(
      name: words.joined(separator: " ") + random.pick(SampleWords.vesselSuffix), permit: random.digits(10),
      nationality: random.pick(SampleWords.nationalities), homePort: random.pick(SampleWords.ports),
      ground: random.below(SampleWords.grounds.count))
  }

  /// Some vessels are boarded often, more than half never.
  func vessel(_ random: inout SampleRandom) -> Vessel {
    let fraction = random.fraction()
    return vessels[min(vessels.count - 1, Int(0.45 * Double(vessels.count) * fraction * fraction))]
  }
}

/// ObjectIDs as drivers make them: seconds, five bytes for the process, and a counter.
struct SampleObjectIDs: Sendable {
  private let process: UInt64
  private var counter: UInt32

  init(_ random: inout SampleRandom) {
    process = random.next() & 0xff_ffff_ffff
    counter = UInt32(random.below(1 << 20))
  }

  mutating func next(milliseconds: Int64) -> ObjectID {
    counter = (counter + 1) & 0xff_ffff
    let seconds = UInt64(UInt32(truncatingIfNeeded: milliseconds / 1000))
    return ObjectID(high: seconds << 32 | process >> 8, low: UInt32(process & 0xff) << 24 | counter)
  }
}

func sampleMap(_ entries: KeyValuePairs<Text, Value>) -> ValueMap {
  var map = ValueMap()
  for (key, value) in entries { map[key] = value }
  return map
}

func text(_ string: String) -> Value { .string(Text(string)) }
