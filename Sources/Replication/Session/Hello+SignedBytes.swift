extension Hello {
  /// What the device key signs: a fixed layout over the connection's exporter value and every field.
  package func signedBytes(exporter: Digest, isDialer: Bool, _ hash: HashFunction) -> [UInt8] {
    var out = DomainTag.hello.bytes
    exporter.append(to: &out)
    out.append(isDialer ? 1 : 0)
    appendBigEndian(version, to: &out)
    appendBigEndian(features, to: &out)
    fleet.digest.append(to: &out)
    device.raw.append(to: &out)
    instance.append(to: &out)
    out.append(replica == nil ? 0 : 1)
    replica?.append(to: &out)
    appendBigEndian(ownCommits, to: &out)
    appendBigEndian(UInt64(bitPattern: wallMilliseconds), to: &out)
    appendBigEndian(listenPort, to: &out)
    authority.append(to: &out)
    interest.append(to: &out)
    for credential in credentials { Digest.of(credential, hash).append(to: &out) }
    return out
  }
}
