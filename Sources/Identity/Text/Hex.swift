import Wire

/// Lower-case hexadecimal: the text form of ids.
package enum Hex {
  package static func encode(_ bytes: some Sequence<UInt8>) -> String { hexadecimal(bytes) }

  /// Takes both cases. Nil for an odd length or any other character.
  package static func decode(_ text: some StringProtocol) -> [UInt8]? { decodeHexadecimal(text.utf8) }
}
