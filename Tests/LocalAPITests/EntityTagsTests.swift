import Testing

@testable import LocalAPI

@Suite("Lists of entity tags")
struct EntityTagsTests {
  private func strong(_ values: String...) -> [String]? { EntityTags(values)?.strong }

  @Test("tags are read from lists and from headers that stand twice, whatever space is between them")
  func lists() {
    #expect(strong("\"a\"") == ["a"])
    #expect(strong("\"a\",\"b\" ,\t\"c\"") == ["a", "b", "c"])
    #expect(strong("\"a\"", "\"b\"") == ["a", "b"])
    #expect(strong(" ,\"a\",, ") == ["a"])
    #expect(strong("\"\"") == [""])
    #expect(strong("\"a,b\", \"c d\"") == ["a,b", "c d"])
  }

  @Test("a weak tag counts for reading and not for writing")
  func weakTags() {
    let tags = EntityTags(["W/\"a\", \"b\""])
    #expect(tags?.strong == ["b"] && tags?.all == ["a", "b"])
    #expect(EntityTags(["w/\"a\""]) == nil)
  }

  @Test("* stands for any, alone")
  func any() {
    #expect(EntityTags(["*"]) == .any)
    #expect(EntityTags(["*"])?.all == [] && EntityTags(["*"])?.strong == [])
    for text in ["* ", "*,*", "\"a\",*", "*\"a\""] { #expect(EntityTags([text]) == nil, "\(text)") }
  }

  @Test(
    "anything else is no list",
    arguments: ["", "a", "\"a", "a\"", "\"a\"b", "\"a\" \"b\"", "W/a", "W/", ",", "\"a\";q=1"])
  func refusals(text: String) {
    #expect(EntityTags([text]) == nil)
  }
}
