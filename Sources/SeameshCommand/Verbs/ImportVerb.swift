import LocalAPI
import Replication
import Seamesh
import Wire

let byCollectionOption = OptionSpecification(
  "by-collection", .none, "take the collection from each line of an export of a whole partition")

let importVerb = Verb(
  "import", "store the documents of files",
  details: [
    "FILE is a JSON array or JSON lines; - is standard input. Documents keep their _id, or get a new one. A record that "
      + "cannot be stored is reported with its line and put aside in a file in the data directory; the rest goes in, and "
      + "the exit status is 1. A record replaces the document of its _id; importing a file again changes nothing then.",
    documentLimits,
    "With --partition-by there is no PARTITION: a record whose FIELD holds the text V goes to the partition FIELD=V; "
      + "one in which it is empty, missing or not a text is put aside.",
    "With --by-collection there is no COLLECTION: each line is one that seamesh export PARTITION wrote, and its document goes into "
      + "the collection that it names.",
    "A file of records put aside is imported like any other, mended or with the partition that was missing: of each of its lines "
      + "the record inside is stored. Delete it afterwards.",
  ],
  operands: [Operand("PARTITION"), Operand("COLLECTION"), Operand("FILE", .zeroOrMore, kind: .file)],
  usages: [
    "[OPTION]... PARTITION COLLECTION FILE...", "--partition-by=FIELD [OPTION]... COLLECTION FILE...",
    "--by-collection [OPTION]... PARTITION FILE...",
  ],
  options: [
    OptionSpecification("partition-by", .text("FIELD"), "take the partition from a field of each record"),
    byCollectionOption, keepAbsentOption,
  ],
  examples: [
    .init("seamesh import all-users User users.json", "Stores all users in one partition"),
    .init(
      "seamesh import --partition-by=agency BoardingReports reports.json",
      "Sorts reports into one partition for each agency"),
    .init(
      "seamesh import --by-collection agency=V agency.jsonl",
      "Stores a partition that was exported as a whole"),
  ]
) { invocation, context throws(Failure) in
  let field = invocation["partition-by"]
  let isByCollection = invocation.has(byCollectionOption.name)
  guard field == nil || !isByCollection else {
    throw .usage("--partition-by and --\(byCollectionOption.name) do not go together")
  }
  let names = invocation.operands.dropFirst(field == nil && !isByCollection ? 2 : 1)
  guard !names.isEmpty else { throw .usage("FILE is missing; standard input is -") }
  guard field?.isEmpty != true else { throw .usage("--partition-by takes the name of a field") }
  // Which operand is which follows from the options, so that the parser cannot know.
  if field == nil { try Operand.Kind.partition.check(invocation.required(0), "PARTITION") }
  if !isByCollection { try Operand.Kind.collection.check(invocation.required(field == nil ? 1 : 0), "COLLECTION") }
  var files: [InputFile] = []
  for name in names {
    guard !name.lowercased().hasSuffix(".csv") else {
      throw .usage("\(shown(name)): CSV is not taken; make a JSON array or JSON lines of it")
    }
    files.append(try InputFile(name))
  }
  let target: ImportTarget = field.map { .field($0) } ?? .partition(invocation.required(0))
  let importer = Importer(
    client: try context.client, target: target,
    collection: isByCollection ? nil : invocation.required(field == nil ? 1 : 0),
    keepAbsent: invocation.has(keepAbsentOption.name),
    aside: AsideFile(directory: context.directory, terminal: context.terminal),
    progress: ProgressBar("importing", on: context.terminal), fileBytes: totalBytes(files))
  let counts: Importer.Counts
  do throws(Failure) {
    counts = try importer.run(files)
  } catch {
    importer.progress.finish()
    let stored = importer.counts.imported
    throw Failure(error.status, "\(error.message) (stopped after \(stored) stored documents)")
  }
  report(counts, importer.aside, context)
  guard counts.aside == 0 else {
    throw Failure(
      .failed,
      counts.imported == 0 ? "no record could be stored" : "\(counted(counts.aside, "record")) could not be stored")
  }
}

private func totalBytes(_ files: [InputFile]) -> Int64? {
  files.reduce(0) { total, file in total.flatMap { total in file.byteCount.map { total + $0 } } }
}

private func report(_ counts: Importer.Counts, _ aside: AsideFile, _ context: Context) {
  if context.isJSON {
    let file = aside.path.map { Value.string(Text($0)) } ?? .null
    let members: [ValueMap.Entry] = [
      .init(key: "imported", value: .int(counts.imported)), .init(key: "unchanged", value: .int(counts.unchanged)),
      .init(key: "aside", value: .int(counts.aside)), .init(key: "asideFile", value: file),
    ]
    context.terminal.print(ExtendedJSON.text(.map(ValueMap(members) ?? ValueMap())))
  } else {
    let unchanged = counts.unchanged > 0 ? ", of them \(counts.unchanged) without a change" : ""
    let put = aside.path.map { "; \(counts.aside) put aside in \($0)" } ?? ""
    context.terminal.print("imported \(counts.imported)\(unchanged)\(put)")
  }
}
