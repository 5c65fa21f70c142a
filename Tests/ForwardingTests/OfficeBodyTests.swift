import Replication
import Testing
import Wire

@testable import Forwarding

@Suite("What an editor made of what JSONB showed") struct OfficeBodyTests {
  private func exact(_ new: String, read: String) throws -> String {
    let read = try ExtendedJSON.parseMap(Array(read.utf8))
    return ExtendedJSON.text(.map(OfficeBody.exact(try ExtendedJSON.parseMap(Array(new.utf8)), read: read)))
  }

  @Test(
    "a value that was left alone keeps its kind and its sign",
    arguments: [
      (#"{"a":0,"b":1}"#, #"{"a":-0.0,"b":1}"#, #"{"a":-0.0,"b":1}"#),
      (#"{"a":10000000000000000,"b":2}"#, #"{"a":1e16,"b":1}"#, #"{"a":1e+16,"b":2}"#),
      (#"{"m":{"a":0,"b":2}}"#, #"{"m":{"a":-0.0,"b":1}}"#, #"{"m":{"a":-0.0,"b":2}}"#),
      (#"{"l":[0,5]}"#, #"{"l":[-0.0]}"#, #"{"l":[-0.0,5]}"#),
      (#"{"l":[7,0]}"#, #"{"l":[-0.0,7]}"#, #"{"l":[7,-0.0]}"#),
    ])
  func kept(_ new: String, _ read: String, _ expected: String) throws {
    #expect(try exact(new, read: read) == expected)
  }

  @Test("a value that was changed is what the editor wrote") func changed() throws {
    #expect(try exact(#"{"a":1,"c":[1]}"#, read: #"{"a":1.5,"b":2,"c":{}}"#) == #"{"a":1,"c":[1]}"#)
  }
}
