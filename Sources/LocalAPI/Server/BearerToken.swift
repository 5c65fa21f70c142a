import Glibc

/// The secret that admits a request over TCP: 32 random bytes, in hexadecimal, in a file that only its owner can read.
struct BearerToken: Sendable {
  static let byteCount = 32
  static let fileName = "api.token"

  let hexadecimal: [UInt8]
  /// In place of one that others could read.
  let isReplaced: Bool

  /// Reads `path`, or makes it where there is none. Who could read the one that is there keeps what he read, however narrow its mode
  /// is made: it admits nobody any more.
  init(path: String) throws(LocalServerError) {
    let found = try BearerToken.read(path)
    isReplaced = found?.isPrivate == false
    if let found, found.isPrivate {
      hexadecimal = found.token
    } else {
      hexadecimal = BearerToken.random()
      try BearerToken.write(hexadecimal, path)
    }
  }

  /// Takes the same time wherever the first wrong byte stands.
  func matches(_ candidate: some Collection<UInt8>) -> Bool {
    guard candidate.count == hexadecimal.count else { return false }
    return zip(candidate, hexadecimal).reduce(0 as UInt8) { $0 | ($1.0 ^ $1.1) } == 0
  }

  private static func random() -> [UInt8] {
    var generator = SystemRandomNumberGenerator()
    let digits = Array("0123456789abcdef".utf8)
    return (0..<byteCount * 2).map { _ in digits[Int.random(in: 0..<16, using: &generator)] }
  }

  /// `isPrivate`: whether its owner alone may read it, and is whom this process acts for.
  private static func read(_ path: String) throws(LocalServerError) -> (token: [UInt8], isPrivate: Bool)? {
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
    guard file >= 0 else {
      if errno == ENOENT { return nil }
      throw .system("cannot read \(path)", errno)
    }
    defer { close(file) }
    var facts = stat()
    guard fstat(file, &facts) == 0 else { throw .system("cannot look at \(path)", errno) }
    var bytes = [UInt8](repeating: 0, count: byteCount * 2 + 1)
    let count = Glibc.read(file, &bytes, bytes.count)
    let token = Array(bytes.prefix(byteCount * 2))
    let isHexadecimal = token.allSatisfy {
      (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
    }
    guard count >= byteCount * 2, isHexadecimal else { throw .damagedToken(path) }
    return (token, facts.st_mode & 0o077 == 0 && facts.st_uid == geteuid())
  }

  /// Whole and on disk before it has its name: half a token would keep every later start from serving.
  private static func write(_ token: [UInt8], _ path: String) throws(LocalServerError) {
    let new = path + ".new"
    unlink(new)
    let file = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard file >= 0 else { throw .system("cannot make \(new)", errno) }
    defer { close(file) }
    let line = token + [UInt8(ascii: "\n")]
    guard Glibc.write(file, line, line.count) == line.count, fsync(file) == 0, rename(new, path) == 0 else {
      throw .system("cannot write \(path)", errno)
    }
  }
}
