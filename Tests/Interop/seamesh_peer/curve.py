"""Which Ed25519 signatures are accepted, from the curve's equation: slow, and free of any library's opinion.

Points are pairs of numbers modulo P. Nothing here keeps a secret.
"""

import hashlib

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ZERO = (0, 1)


def add(a, b):
    (x1, y1), (x2, y2) = a, b
    product = D * x1 * x2 * y1 * y2 % P
    return (
        (x1 * y2 + x2 * y1) * pow(1 + product, -1, P) % P,
        (y1 * y2 + x1 * x2) * pow(1 - product, -1, P) % P,
    )


def times(number, point):
    out = ZERO
    while number:
        if number & 1:
            out = add(out, point)
        point, number = add(point, point), number >> 1
    return out


def encode(point) -> bytes:
    x, y = point
    return (y | (x & 1) << 255).to_bytes(32, "little")


def decode(content: bytes):
    """The point, or None. Takes what is not canonical, too."""
    number = int.from_bytes(content, "little")
    sign, y = number >> 255, (number & (1 << 255) - 1) % P
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * pow(2, (P - 1) // 4, P) % P
    if x * x % P != square:
        return None
    return (P - x if x & 1 != sign and x else x, y)


def is_small(point) -> bool:
    return times(8, point) == ZERO


BASE = decode((4 * pow(5, -1, P) % P).to_bytes(32, "little"))
# A point of order 8: what the factor L leaves of one outside of the large group.
TORSION = next(
    point
    for point in (times(L, candidate) for candidate in map(decode, (u.to_bytes(32, "little") for u in range(2, 99))) if candidate)
    if times(4, point) != ZERO
)


def challenge(r: bytes, key: bytes, message: bytes) -> int:
    return int.from_bytes(hashlib.sha512(r + key + message).digest(), "little") % L


def accepts(signature: bytes, message: bytes, key: bytes) -> bool:
    """The rule of Docs/PROTOCOL.md, word for word."""
    r, s = signature[:32], int.from_bytes(signature[32:], "little")
    a, commitment = decode(key), decode(r)
    if s >= L or a is None or encode(a) != key or is_small(a):
        return False
    if commitment is None or is_small(commitment):
        return False
    h = challenge(r, key, message)
    x, y = times(h, a)
    return encode(add(times(s, BASE), (P - x if x else 0, y))) == r
