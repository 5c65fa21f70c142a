import Replication
import Wire

/// Messages that a later build says of its own accord, in tests: those that anybody may pass over, and those for who has
/// announced that it reads them.
package enum LaterNews {
  package static func isForAnybody(_ number: UInt64) -> Bool { number >= MessageCodec.firstOptionalNumber }

  /// Numbers of what may be said to whom the hello came from.
  package static func numbers(of formats: KnownFormats, to hello: Hello) -> [UInt64] {
    let readsAll = formats.features != 0 && hello.features & formats.features == formats.features
    return formats.news.filter { isForAnybody($0) || readsAll }
  }

  /// The number, and a text that only a later build would understand.
  package static func frame(_ number: UInt64) -> [UInt8] {
    var writer = CBORWriter(reserving: 16)
    writer.arrayHeader(2)
    writer.unsigned(number)
    writer.text("news")
    return writer.bytes
  }
}
