import Replication
import Seamesh
import Storage
import Testing
import Wire

@testable import SeameshCommand

@Suite("Verbs on a store with damaged documents", .enabled(if: isCommandBuilt), .serialized)
struct DamageVerbTests {
  private func spoil(_ whole: WholeNode, _ id: Text, log: Bool) throws {
    let database = try Database(path: whole.directory + "/" + Store.fileName, access: .readWrite)
    let key = Value.string(id).canonicalBytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    try database.execute("PRAGMA busy_timeout=5000; UPDATE documents SET state=x'ff' WHERE key=x'\(key)'")
    if log { try database.execute("UPDATE runs SET body=x'ff'") }
  }

  @Test("what does not read is named and ends with status 1, all else is shown, and what was put whole is there again")
  func damaged() throws {
    let whole = try WholeNode()
    for id in ["a", "b", "c"] { _ = try whole.seamesh("put", "p=1", "C", "--id=\(id)", input: "{\"n\":1}") }
    try spoil(whole, "c", log: false)
    #expect(try whole.seamesh("find", "p=1", "C").status == 0)
    let mended = try whole.seamesh("doctor", "--json")
    #expect(mended.output.contains("document-mended") && mended.status == 0)
    try spoil(whole, "b", log: true)
    let found = try whole.seamesh("find", "p=1", "C")
    #expect(found.status == 1 && found.lines.count == 2 && found.errors.count == 1)
    #expect(found.error.contains("damaged on this device: \"b\""))
    let exported = try whole.seamesh("export", "p=1")
    #expect(exported.status == 1 && exported.lines.count == 2 && exported.error.contains("\"b\""))
    let get = try whole.seamesh("get", "p=1", "C", "b")
    #expect(get.isRefusal && get.status == 1 && get.error.contains("write it whole"))
    #expect(try whole.seamesh("partitions").status == 0)
    let doctor = try whole.seamesh("doctor", "--json")
    #expect(doctor.status == 1 && doctor.output.contains("document-damaged") && doctor.output.contains("b of C in p=1"))
    #expect(try whole.seamesh("put", "p=1", "C", "--id=b", input: "{\"n\":2}").status == 0)
    #expect(try whole.seamesh("find", "p=1", "C").lines.count == 3)
    #expect(try whole.seamesh("doctor", "--json").output.contains("document-damaged") == false)
  }
}
