import COpenSSL
import Replication
import Testing
import TestSupport

@testable import Identity

@Suite struct TLSIdentityTests {
  @Test("the certificate shows the device key, is small, and is the same at every start")
  func certificate() throws {
    let key = try Fixture.key(21)
    let identity = try TLSIdentity(key)
    #expect(PublicKey(certificateDER: identity.certificateDER) == key.publicKey)
    #expect(identity.certificateDER.count < 300)
    #expect(try TLSIdentity(key).certificateDER == identity.certificateDER)
  }

  @Test("OpenSSL takes certificate and private key as a pair, and the certificate signs itself")
  func pair() throws {
    let identity = try TLSIdentity(try Fixture.key(21))
    try withParsed(identity) { certificate, key in
      #expect(X509_check_private_key(certificate, key) == 1)
      #expect(X509_verify(certificate, key) == 1)
    }
  }

  @Test("the certificate is valid for every clock from 1970 to 9999 and names nobody")
  func dates() throws {
    try withParsed(try TLSIdentity(try Fixture.key(21))) { certificate, _ in
      for seconds in [1, 1_000_000_000, 4_102_444_800, 253_402_300_798] {
        var time = time_t(seconds)
        #expect(X509_cmp_time(X509_get0_notBefore(certificate), &time) < 0)
        #expect(X509_cmp_time(X509_get0_notAfter(certificate), &time) > 0)
      }
      #expect(X509_get_ext_count(certificate) == 0)
      #expect(X509_NAME_entry_count(X509_get_subject_name(certificate)) == 1)
    }
  }

  @Test("a certificate cut anywhere, or with bytes after it, has no key")
  func truncation() throws {
    let whole = try TLSIdentity(try Fixture.key(21)).certificateDER
    for count in 0..<whole.count { #expect(PublicKey(certificateDER: Array(whole.prefix(count))) == nil) }
    #expect(PublicKey(certificateDER: whole + [0]) == nil)
    #expect(PublicKey(certificateDER: [UInt8](repeating: 0x30, count: PublicKey.certificateByteLimit + 1)) == nil)
  }

  @Test("turned bits and random bytes never crash the parser")
  func noise() throws {
    let whole = try TLSIdentity(try Fixture.key(21)).certificateDER
    for place in whole.indices {
      for bit in 0..<8 {
        var bytes = whole
        bytes[place] ^= 1 << UInt8(bit)
        _ = PublicKey(certificateDER: bytes)
      }
    }
    var generator = SplitMix64(seed: 0x715)
    for _ in 0..<2_000 {
      let count = Int.random(in: 0..<400, using: &generator)
      #expect(PublicKey(certificateDER: generator.bytes(count)) == nil)
    }
  }

  @Test("keys of any other kind are refused", arguments: ["X25519", "ED448"])
  func otherKinds(kind: String) throws {
    let context = try #require(EVP_PKEY_CTX_new_from_name(nil, kind, nil))
    defer { EVP_PKEY_CTX_free(context) }
    var made: OpaquePointer?
    try #require(EVP_PKEY_keygen_init(context) == 1 && EVP_PKEY_keygen(context, &made) == 1)
    let key = try #require(made)
    defer { EVP_PKEY_free(key) }
    #expect(PublicKey(certificateDER: try certificate(showing: key)) == nil)
  }

  /// Our certificate with another key in it; nobody looks at its own signature.
  private func certificate(showing key: OpaquePointer) throws -> [UInt8] {
    var encoded: [UInt8] = []
    try withParsed(try TLSIdentity(try Fixture.key(21))) { certificate, signer in
      try #require(X509_set_pubkey(certificate, key) == 1 && X509_sign(certificate, signer, nil) > 0)
      var bytes: UnsafeMutablePointer<UInt8>?
      let count = i2d_X509(certificate, &bytes)
      let start = try #require(bytes)
      defer { CRYPTO_free(start, nil, 0) }
      encoded = Array(UnsafeBufferPointer(start: start, count: Int(count)))
    }
    return encoded
  }

  private func withParsed(_ identity: TLSIdentity, _ body: (OpaquePointer, OpaquePointer) throws -> Void) throws {
    try identity.certificateDER.withUnsafeBufferPointer { certificateBytes in
      try identity.privateKeyDER.withUnsafeBufferPointer { keyBytes in
        var (first, second) = (certificateBytes.baseAddress, keyBytes.baseAddress)
        let certificate = try #require(d2i_X509(nil, &first, certificateBytes.count))
        defer { X509_free(certificate) }
        let key = try #require(d2i_AutoPrivateKey(nil, &second, keyBytes.count))
        defer { EVP_PKEY_free(key) }
        try body(certificate, key)
      }
    }
  }
}
