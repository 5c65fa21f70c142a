extension ExtendedJSON {
  /// As many values as there can be in `bytes` at the most, without one of them being made: whoever is to keep the memory of
  /// several texts within bounds knows it before they are read. Behind a comma or an opening bracket begins one, save within a
  /// string, and no string goes on behind the end of its line. Of lines of JSON the first value of each is not counted.
  package static func valueCountAtMost(in bytes: ArraySlice<UInt8>) -> Int {
    var (count, isString, isEscaped) = (1, false, false)
    for byte in bytes {
      if isString {
        isString = byte != UInt8(ascii: "\n") && (isEscaped || byte != UInt8(ascii: "\""))
        isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
        continue
      }
      switch byte {
      case UInt8(ascii: "\""): (isString, isEscaped) = (true, false)
      case UInt8(ascii: ","), UInt8(ascii: "["), UInt8(ascii: "{"): count += 1
      default: break
      }
    }
    return count
  }
}
