"""Hashes, ids and keys."""

import hashlib
import hmac

from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey, VerifyKey

TAG_BYTES = 16


def tag(name: str) -> bytes:
    """The 16-byte prefix of one kind of hash or signature input, such as ``run``."""
    text = b"seamesh/1 " + name.encode()
    assert len(text) <= TAG_BYTES, name
    return text.ljust(TAG_BYTES, b"\0")


def sha256(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def u(value: int, byte_count: int) -> bytes:
    """An unsigned integer, big-endian."""
    return value.to_bytes(byte_count, "big")


def counted(content: bytes) -> bytes:
    return u(len(content), 2) + content


def public_key(key: SigningKey) -> bytes:
    return bytes(key.verify_key)


def sign(key: SigningKey, message: bytes) -> bytes:
    return key.sign(message).signature


def verify(signature: bytes, message: bytes, key: bytes) -> bool:
    try:
        VerifyKey(key).verify(message, signature)
        return True
    except (BadSignatureError, ValueError):
        return False


def fleet_id(root: bytes) -> bytes:
    return sha256(tag("fleet"), root)


def device_id(key: bytes) -> bytes:
    return sha256(tag("device"), key)


def replica_id(device_key: bytes, nonce: bytes) -> bytes:
    return sha256(tag("replic"), device_id(device_key), nonce)[:16]


def partition_id(fleet: bytes, name: str) -> bytes:
    return sha256(tag("partit"), fleet, name.encode())


def mac(key: bytes, message: bytes) -> bytes:
    return hmac.new(key, message, hashlib.sha256).digest()


def discovery_key(fleet: bytes) -> bytes:
    """Whoever knows the fleet has it, and nobody else."""
    return sha256(tag("discov"), fleet)


def discovery_tag(fleet: bytes, instance_name: str) -> bytes:
    return mac(discovery_key(fleet), instance_name.encode())[:8]
