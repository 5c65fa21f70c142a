"""Join codes: what a person carries to a new device."""

import base64

from . import values
from .hashing import sha256, u


def make_code(fleet: bytes, inviter: bytes, serial: int, secret: bytes, expires: int, addresses: list[str]) -> str:
    content = values.encode([1, fleet, inviter, serial, secret, expires, [_packed(item) for item in addresses]])
    return base64.b32encode(content + sha256(content)[:4]).decode().rstrip("=")


def read_code(text: str) -> dict:
    """Raises ValueError for a mistyped code."""
    letters = "".join(text.upper().replace("-", "").split())
    content = base64.b32decode(letters + "=" * (-len(letters) % 8))
    content, check = content[:-4], content[-4:]
    if sha256(content)[:4] != check:
        raise ValueError("mistyped")
    version, fleet, inviter, serial, secret, expires, addresses = values.decode(content)
    if version != 1:
        raise ValueError(f"version {version}")
    return {
        "fleet": fleet, "inviter": inviter, "serial": serial, "secret": secret, "expires": expires,
        "addresses": [_unpacked(item) for item in addresses],
    }  # fmt: skip


def _packed(address: str) -> bytes | str:
    try:
        host, port = address.split(":")
        packed = bytes(map(int, host.split("."))) + u(int(port), 2)
        return packed if len(packed) == 6 and _unpacked(packed) == address else address
    except (ValueError, OverflowError):
        return address


def _unpacked(address: bytes | str) -> str:
    if isinstance(address, str):
        return address
    return ".".join(map(str, address[:4])) + f":{int.from_bytes(address[4:], 'big')}"

