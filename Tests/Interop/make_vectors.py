#!/usr/bin/python3
"""Writes vectors.json: bytes that this implementation makes, for the node's own tests to make again and to read."""

import json
import pathlib
import uuid

from nacl.signing import SigningKey

from seamesh_peer import chains, channel, curve, exchange, hashing, joining, messages, payloads, records, statements, values
from seamesh_peer.hashing import u
from seamesh_peer.payloads import Element, Operation, Write

PATH = pathlib.Path(__file__).with_name("vectors.json")


def key(number: int) -> SigningKey:
    return SigningKey(bytes([number]) * 32)


ROOT, DEVICE = key(1), key(2)
DEVICE_KEY = hashing.public_key(DEVICE)
FLEET = hashing.fleet_id(hashing.public_key(ROOT))
SECRET = bytes(range(32))
NONCE = bytes(range(100, 116))
REPLICA = hashing.replica_id(DEVICE_KEY, NONCE)
PARTITION = "agency=Galápagos"
EXPORTER = hashing.sha256(b"exporter")


def identity() -> dict:
    code = {
        "serial": 7, "expires": 1_800_000_000,
        "addresses": ["192.168.1.20:41234", "[fe80::1%eth0]:7", "relay.example.org:443"],
    }  # fmt: skip
    return {
        "root_seed": bytes(ROOT), "device_seed": bytes(DEVICE), "device_key": DEVICE_KEY, "fleet": FLEET,
        "device": hashing.device_id(DEVICE_KEY), "nonce": NONCE, "replica": REPLICA, "partition_name": PARTITION,
        "partition": hashing.partition_id(FLEET, PARTITION), "secret": SECRET,
        "instance": "k3v9q1",
        "discovery_tag": hashing.discovery_tag(FLEET, "k3v9q1"), "exporter": EXPORTER,
        "certificate": channel.certificate(DEVICE), "join": code,
        "join_code": joining.make_code(FLEET, DEVICE_KEY, secret=SECRET, **code),
    }  # fmt: skip


def make_statements() -> list[dict]:
    member = statements.membership(DEVICE_KEY, "anna", "bridge", "admin", {"zone": "N", "agency": "Galápagos"})
    last: dict[bytes, statements.Statement] = {}
    out = []

    def say(signer, content) -> statements.Statement:
        statement = statements.make(FLEET, signer, last.get(bytes(signer)), content)
        last[bytes(signer)] = statement
        out.append({
            "seed": bytes(signer), "sequence": statement.sequence, "previous": statement.previous,
            "kind": statement.kind, "body": statement.body, "id": statement.id, "encoded": statement.encoded,
        })  # fmt: skip
        return statement

    say(ROOT, statements.genesis("North"))
    membership = say(ROOT, member).id
    say(DEVICE, statements.replica(DEVICE_KEY, NONCE, membership))
    say(ROOT, statements.grant(statements.EVERYONE, statements.WRITE, "*"))
    say(ROOT, statements.grant([0, DEVICE_KEY], statements.MANAGE, "agency=*"))
    say(ROOT, statements.grant([1, "anna"], statements.CARRY, "x"))
    say(ROOT, statements.grant([2, "officer"], statements.NONE, "x"))
    say(ROOT, statements.rule("agency"))
    return out


def documents() -> list[Write]:
    other = (bytes(range(16)), 7)
    return [
        Write("boardings", values.ObjectID(bytes(range(12))), payloads.CREATE, 1, [
            Operation(payloads.SET, ["vessel"], {}),
            Operation(payloads.SET, ["vessel", "name"], "Ana\0 Marí\u0301a"),
            Operation(payloads.SET, ["at"], values.Date(-1)),
            Operation(payloads.SET, ["lat"], -0.7402),
            Operation(payloads.SET, ["half"], 1.5),
            Operation(payloads.SET, ["zero"], -0.0),
            Operation(payloads.SET, ["deep"], [1, [True, None], {"b": 1, "a": 2, "aa": [uuid.UUID(int=5)]}]),
            Operation(payloads.SET, ["photo"], values.Blob(hashing.sha256(b""), 1 << 34, "image/jpeg", hashing.sha256(b"list"))),
            Operation(payloads.SET, ["thumbnail"], values.Blob.of(b"small", "image/png")),
            Operation(payloads.SET, ["raw"], bytes([0, 255, 0])),
            Operation(payloads.INCREMENT, ["count"], -5),
        ]),
        Write("boardings", "zz", payloads.EDIT, 3, [
            Operation(payloads.LIST_INSERT, ["crew"], "first", b"\x40"),
            Operation(payloads.LIST_INSERT, ["crew"], {}, b"\x80"),
            Operation(payloads.SET, ["crew", Element(b"\x80"), "name"], "Ben"),
            Operation(payloads.LIST_REMOVE, ["crew", Element(b"\x20\x00", other)]),
            Operation(payloads.SET_ADD, ["tags"], "night"),
            Operation(payloads.SET_REMOVE, ["tags"], [1, 2]),
            Operation(payloads.REMOVE, ["old"]),
        ]),
        Write("a", -3, payloads.DELETE, 2),
        Write("a", uuid.UUID(int=9), payloads.DELETE, 2**53 - 2),
    ]  # fmt: skip


def make_runs() -> list[dict]:
    chain = chains.Chain(FLEET, hashing.partition_id(FLEET, PARTITION), REPLICA)
    context = [(bytes([9]) * 16, 3, bytes([8]) * 16), (bytes([1]) * 16, 2**53 - 1, bytes([7]) * 16)]
    edit = [Write("a", 1, payloads.EDIT, 1, [Operation(payloads.SET, ["x"], 2**63 - 1)])]
    first = chains.Run(chain, 1, chain.genesis, [], [
        chains.plain_change(chain, 1, 5 << 16, 1_700_000_000_000, documents()),
    ])  # fmt: skip
    second = chains.Run(chain, 2, first.hashes[-1], context, [
        chains.plain_change(chain, 2, 2**64 - 1, -(2**63), edit),
        chains.plain_change(chain, 3, 0, 2**63 - 1, edit),
        chains.plain_change(chain, 4, 1, 0, edit, extensions={
            chains.SCHEMA_VERSION: u(3, 4), chains.ON_BEHALF_OF: "émile".encode(),
            chains.WALL_SOURCE: u(2, 1) + u(250, 4), chains.CAUSE: b"\1order 7", 0x7FFF: b"content",
            chains.ORIGIN: chains.origin(bytes([3]) * 16, 9, hashing.sha256(b"o"))}),
    ])  # fmt: skip
    held = chains.Run(chain, 5, second.hashes[-1], context[:1], [
        chains.Change(5, 9, 9, b"unknown", [bytes([4]) * 16], codec=1),
        chains.Change(6, 10, 10, b"unknown", [bytes([4]) * 16, bytes([5]) * 16], extensions={chains.KEY_EPOCH: b"!"}),
    ])  # fmt: skip
    apart = chains.Run(chain, 7, held.hashes[-1], context, [
        chains.plain_change(chain, 7, 11, 11, [
            Write("photos", "p", payloads.CREATE, 1, [Operation(payloads.SET, ["raw"], bytes(20_000))])]),
    ])  # fmt: skip
    return [
        {
            "name": name, "encoded": run.encode(DEVICE, headers_only), "headers_only": headers_only,
            "context": chains.encode_context(run.context),
            "hashes": run.hashes, "key_hashes": [change.key_hashes for change in run.changes],
            "payload_counts": [len(change.payload) for change in run.changes],
        }
        for name, run, headers_only in [
            ("documents", first, []), ("extensions", second, []), ("held", held, []), ("apart", apart, []),
            ("some headers only", second, [0, 2]), ("headers only", held, [0, 1]), ("apart, header only", apart, [0]),
        ]
    ]  # fmt: skip


def make_records() -> dict:
    vector = [(REPLICA, 3, bytes([8]) * 16), (bytes([9]) * 16, 2**53 - 1, bytes([7]) * 16)]
    received = records.Holdings(FLEET, DEVICE_KEY, PARTITION, 1, [], records.RECEIVED, None)
    accepted = records.Holdings(FLEET, DEVICE_KEY, PARTITION, 2**53 - 1, vector, records.ACCEPTED, (REPLICA, 4))
    rule = statements.make(FLEET, ROOT, None, statements.rule("agency")).encoded
    chain = chains.Chain(FLEET, hashing.partition_id(FLEET, PARTITION), REPLICA)
    large = chains.plain_change(chain, 1, 1, 1, [
        Write("photos", "p", payloads.CREATE, 1, [Operation(payloads.SET, ["raw"], bytes(17_000))])])  # fmt: skip
    run = chains.Run(chain, 1, chain.genesis, [], [large])
    content = bytes(range(256)) * 1_025
    return {
        "holdings": [each.encode(DEVICE) for each in (received, accepted)],
        "bundle": records.bundle(FLEET, [rule], {PARTITION: [[[0, []], run.encode(DEVICE), large.payload]], "a": [
            [[1, []], chains.Run(chain, 1, chain.genesis, [], [large]).encode(DEVICE), large.payload]]}),
        "pieces": [hashing.sha256(content[:262_144]), hashing.sha256(content[262_144:])],
        "list_hash": values.Blob.of(content, "").list,
    }  # fmt: skip


def make_signatures() -> list[dict]:
    """Hostile signatures, each with what the rule says of it."""
    out: list[dict] = []
    secret, nonce = 2**200 + 7, 2**201 + 11
    key = curve.encode(curve.times(secret, curve.BASE))

    def say(name: str, key: bytes, r: bytes, s: int, message: bytes):
        signature = r + s.to_bytes(32, "little")
        out.append({
            "name": name, "key": key, "message": message, "signature": signature,
            "is_accepted": curve.accepts(signature, message, key),
        })  # fmt: skip

    def searched(r: bytes, key: bytes, wanted) -> tuple[bytes, int]:
        """The first message whose challenge is as wanted, with its challenge."""
        for number in range(1 << 16):
            message = b"message %d" % number
            if wanted(h := curve.challenge(r, key, message)):
                return message, h
        raise LookupError

    base, message = curve.times(nonce, curve.BASE), b"message"
    r = curve.encode(base)
    s = (nonce + curve.challenge(r, key, message) * secret) % curve.L
    say("honest", key, r, s, message)
    say("S + L", key, r, s + curve.L, message)
    say("S + 2^255", key, r, s + 2**255, message)

    small = [curve.times(number, curve.TORSION) for number in range(8)]
    encodings = {curve.encode(point) for point in small}
    # Other spellings: y + P where that fits 255 bits, and x = 0 with a sign.
    encodings |= {(y + curve.P | sign << 255).to_bytes(32, "little") for _, y in small if y < 19 for sign in (0, 1)}
    encodings |= {(y | 1 << 255).to_bytes(32, "little") for x, y in small if x == 0}
    for number, encoding in enumerate(sorted(encodings)):
        # With a challenge of 0 modulo 8 the key adds nothing: without the rule on keys the equation holds.
        found, _ = searched(r, encoding, lambda h: h % 8 == 0)
        say(f"key of small order {number}", encoding, r, nonce, found)
        say(f"R of small order {number}", key, encoding, curve.challenge(encoding, key, message) * secret % curve.L, message)

    crooked = curve.encode(curve.add(base, curve.TORSION))
    s = (nonce + curve.challenge(crooked, key, message) * secret) % curve.L
    say("R of mixed order: holds with the cofactor alone", key, crooked, s, message)

    mixed = curve.encode(curve.add(curve.times(secret, curve.BASE), curve.TORSION))
    for name, wanted in [
        ("key of mixed order: holds with the cofactor alone", lambda h: h % 8 != 0),
        ("key of mixed order: holds without the cofactor", lambda h: h % 8 == 0),
    ]:
        found, h = searched(r, mixed, wanted)
        say(name, mixed, r, (nonce + h * secret) % curve.L, found)
    say("key that is no point", next(
        content for content in (bytes([number]) + bytes(31) for number in range(2, 99)) if curve.decode(content) is None
    ), r, s, message)  # fmt: skip
    return out


def make_messages() -> dict:
    vector = [(bytes([9]) * 16, 3, bytes([8]) * 16), (REPLICA, 2**53 - 1, bytes([7]) * 16)]
    partition = hashing.partition_id(FLEET, PARTITION)
    chain = chains.Chain(FLEET, partition, REPLICA)
    write = Write("a", 1, payloads.DELETE, 2)
    run = chains.Run(chain, 1, chain.genesis, vector[:1], [chains.plain_change(chain, 1, 1, 1, [write])])
    rule = statements.make(FLEET, ROOT, None, statements.rule("agency")).encoded
    authority = messages.authority_digest([hashing.sha256(b"2"), hashing.sha256(b"1")])
    interest = messages.interest_digest([partition], ["user=", "agency="])
    hello = messages.hello_for(
        FLEET, EXPORTER, True, NONCE, wall=-1, listen_port=41_234, authority=authority, interest=interest,
        extensions={1: b"x", 32_767: b""})
    inviter = hashing.public_key(ROOT)
    request = messages.JoinRequest(FLEET, inviter, 7, DEVICE_KEY, "Brücke", extensions={1: b"x", 32_767: b""})
    return {
        "hello": hello.signed(DEVICE, EXPORTER, is_dialer=True).encode(),
        "answer": messages.hello_for(FLEET, EXPORTER, False, NONCE).signed(DEVICE, EXPORTER, is_dialer=False).encode(),
        # Of the dialer, then of the listener.
        "fleet_proofs": [messages.fleet_proof(FLEET, EXPORTER, is_dialer) for is_dialer in (True, False)],
        "authority_digest": authority,
        "authority_marks": [
            messages.mark(FLEET, EXPORTER, is_dialer, messages.AUTHORITY, authority) for is_dialer in (True, False)],
        "interest_digest": interest,
        "interest_marks": [
            messages.mark(FLEET, EXPORTER, is_dialer, messages.INTERESTS, interest) for is_dialer in (True, False)],
        "join_request": request.proved(SECRET, EXPORTER).encode(),
        "join_accepted": messages.message(messages.JOIN_ACCEPTED, request.answer(SECRET, EXPORTER), {}),
        "others": [
            messages.message(messages.JOIN_REFUSED, 2, ""),
            messages.message(messages.JOIN_REFUSED, 5, "Büro"),
            *statement_sets(),
            messages.message(messages.STATEMENTS, "", [rule]),
            messages.message(messages.STATEMENTS, f"conversation={64 * 'a'}", [b"x", b"y"]),
            messages.message(messages.STATEMENTS_COMPLETE, ""),
            messages.message(messages.INTEREST_REQUEST),
            messages.message(messages.INTEREST, [partition], ["agency=", "user="]),
            messages.message(messages.INTEREST_CHANGE, [partition], [], [], ["user="]),
            *summaries(partition, vector),
            messages.message(messages.VECTORS, [messages.partition_vector(PARTITION, vector, has_more=True)]),
            messages.message(messages.PULL, 3, messages.partition_vector(PARTITION, [], [(EXPORTER, 9)])),
            messages.message(
                messages.RUNS, PARTITION, 3, False, [[[0, [list(vector[0])]], run.encode(DEVICE)]]),
            messages.message(messages.PAYLOAD_PIECE, PARTITION, 3, EXPORTER, 20_000, 19_995, b"piece"),
            messages.message(messages.HAVE, messages.partition_vector(PARTITION, vector)),
            messages.message(messages.CHAIN_PROBE, PARTITION, REPLICA, True, [[1, bytes(16)], [2, bytes(16)]]),
            messages.message(messages.PING, 2**64 - 1),
            messages.message(messages.PONG, 0),
            messages.message(messages.GOODBYE, 6),
            messages.message(messages.CREDENTIAL_REQUEST, messages.fleet_proof(FLEET, EXPORTER, is_dialer=False)),
            messages.message(messages.CREDENTIALS, [rule, b"x"]),
        ],
    }  # fmt: skip


def statement_sets() -> list[bytes]:
    """A listener holds all of `make_statements`, a dialer lacks the last three and has a branch of root's chain beside, and
    a statement of a device that the listener does not know."""
    held = [statements.read(item["encoded"]) for item in make_statements()]
    third = next(item for item in held if item.issuer == hashing.public_key(ROOT) and item.sequence == 3)
    branch = statements.make(FLEET, ROOT, third, statements.rule("user"))
    stranger = statements.make(FLEET, key(3), None, statements.rule("user"))
    theirs = [*held[:-3], branch, stranger]
    buckets = exchange.digests(exchange.tips(held))
    listing = exchange.tell(theirs, buckets)
    wanted = exchange.wanted(held, listing)

    def step(step: int, *content) -> bytes:
        return messages.message(messages.STATEMENT_SET, "", step, *content)

    return [
        step(exchange.BUCKETS, buckets), step(exchange.TIPS, *listing.content),
        step(exchange.WANTED, exchange.shown(wanted)),
        messages.message(messages.STATEMENT_SET, "conversation=1", exchange.BUCKETS, exchange.digests({})),
    ]  # fmt: skip


def summaries(partition: bytes, vector: list) -> list[bytes]:
    """One partition with a fork, and an empty-handed id beside it."""
    forks = [(REPLICA, 7, hashing.sha256(b"a"), hashing.sha256(b"b"))]
    digests = {
        partition: messages.partition_digest(vector, forks), bytes(32): messages.partition_digest(vector[:1])}
    sums = messages.sums(EXPORTER, digests)
    equal = sum(1 << place for place in range(messages.SUMMARY_BUCKETS) if not sums[place])
    listings = [messages.listing(EXPORTER, digests, place) for place in sorted(set(map(messages.bucket, digests)))]

    def step(step: int, *content) -> bytes:
        return messages.message(messages.SUMMARY, 3, step, *content)

    return [
        step(messages.DIGEST, messages.words([sum(sums) % (1 << 64)])), step(messages.EQUAL),
        step(messages.BUCKETS, messages.words(sums)),
        step(messages.PARTITIONS, messages.words([equal]), listings),
        step(messages.DIFFERING, partition[:8]),
    ]  # fmt: skip


def make() -> str:
    content = {
        "identity": identity(), "statements": make_statements(), "runs": make_runs(),
        "messages": make_messages(), "records": make_records(), "signatures": make_signatures(),
    }  # fmt: skip
    return json.dumps(_shown(content), indent=1, ensure_ascii=False) + "\n"


def _shown(value):
    match value:
        case bytes():
            return value.hex()
        case dict():
            return {name: _shown(item) for name, item in value.items()}
        case list():
            return [_shown(item) for item in value]
        case _:
            return value


if __name__ == "__main__":
    PATH.write_text(make())
