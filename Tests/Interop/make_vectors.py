#!/usr/bin/python3
"""Writes vectors.json: bytes that this implementation makes, for the node's own tests to make again and to read."""

import json
import pathlib
import uuid

from nacl.signing import SigningKey

from seamesh_peer import chains, channel, hashing, joining, messages, payloads, statements, values
from seamesh_peer.payloads import Element, Operation, Write

PATH = pathlib.Path(__file__).with_name("vectors.json")


def key(number: int) -> SigningKey:
    return SigningKey(bytes([number]) * 32)


ROOT, DEVICE = key(1), key(2)
DEVICE_KEY = hashing.public_key(DEVICE)
FLEET = hashing.fleet_id(hashing.public_key(ROOT))
SECRET = bytes(range(16))
ADMISSION = hashing.admission_key(FLEET, SECRET)
NONCE = bytes(range(100, 116))
REPLICA = hashing.replica_id(DEVICE_KEY, NONCE)
PARTITION = "agency=Galápagos"
EXPORTER = hashing.sha256(b"exporter")


def identity() -> dict:
    code = {
        "user": "anna", "role": "officer", "profile": {"zone": "N", "agency": "Galápagos"},
        "addresses": ["192.168.1.20:41234", "[fe80::1%eth0]:7", "relay.example.org:443"],
    }  # fmt: skip
    return {
        "root_seed": bytes(ROOT), "device_seed": bytes(DEVICE), "device_key": DEVICE_KEY, "fleet": FLEET,
        "device": hashing.device_id(DEVICE_KEY), "nonce": NONCE, "replica": REPLICA, "partition_name": PARTITION,
        "partition": hashing.partition_id(FLEET, PARTITION), "secret": SECRET,
        "admission_key": hashing.public_key(ADMISSION), "instance": "k3v9q1",
        "discovery_tag": hashing.discovery_tag(FLEET, "k3v9q1"), "exporter": EXPORTER,
        "certificate": channel.certificate(DEVICE), "join": code,
        "join_code": joining.make_code(FLEET, SECRET, **code),
    }  # fmt: skip


def make_statements() -> list[dict]:
    member = statements.membership(DEVICE_KEY, "anna", "bridge", "admin", {"zone": "N", "agency": "Galápagos"})
    made = [
        (ROOT, 1, statements.genesis("North", hashing.public_key(ADMISSION))),
        (ROOT, 2, member),
        (DEVICE, 1, statements.replica(DEVICE_KEY, NONCE, statements.make(FLEET, ROOT, 2, member).id)),
        (ROOT, 3, statements.grant(statements.EVERYONE, statements.WRITE, "*")),
        (ROOT, 300, statements.grant([0, DEVICE_KEY], statements.MANAGE, "agency=*")),
        (ROOT, 70_000, statements.grant([1, "anna"], statements.CARRY, "x")),
        (ROOT, 2**53 - 1, statements.grant([2, "officer"], statements.NONE, "x")),
        (ROOT, 4, statements.rule("agency")),
    ]
    out = []
    for signer, sequence, content in made:
        statement = statements.make(FLEET, signer, sequence, content)
        out.append({
            "seed": bytes(signer), "sequence": sequence, "kind": statement.kind, "body": statement.body,
            "id": statement.id, "encoded": statement.encoded,
        })  # fmt: skip
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
            Operation(payloads.SET, ["photo"], values.Blob(hashing.sha256(b""), 1 << 40, "image/jpeg")),
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
        chains.plain_change(
            chain, 4, 1, 0, edit, wall_source=2, wall_uncertainty=250, flags=7, schema_version=3, on_behalf_of="émile",
            group=(bytes(16), 1, 2), retires=b"\1\2", origin=(bytes([3]) * 16, 9, hashing.sha256(b"o")),
            extensions={1: b"", 0x7FFF: b"content"}),
    ])  # fmt: skip
    held = chains.Run(chain, 5, second.hashes[-1], context[:1], [
        chains.Change(5, 9, 9, b"unknown", [bytes([4]) * 16], codec=1),
        chains.Change(6, 10, 10, b"unknown", [bytes([4]) * 16, bytes([5]) * 16], extensions={0x8001: b"!"}),
    ], grant=hashing.sha256(b"grant"), key_epoch=0, extensions={5: b"run"})  # fmt: skip
    apart = chains.Run(chain, 7, held.hashes[-1], context, [
        chains.plain_change(chain, 7, 11, 11, [
            Write("photos", "p", payloads.CREATE, 1, [Operation(payloads.SET, ["raw"], bytes(20_000))])]),
    ])  # fmt: skip
    return [
        {
            "name": name, "encoded": run.encode(DEVICE), "context": chains.encode_context(run.context),
            "hashes": run.hashes, "key_hashes": [change.key_hashes for change in run.changes],
            "payload_counts": [len(change.payload) for change in run.changes],
        }
        for name, run in [("documents", first), ("options", second), ("held", held), ("apart", apart)]
    ]  # fmt: skip


def make_messages() -> dict:
    vector = [(bytes([9]) * 16, 3, bytes([8]) * 16), (REPLICA, 2**53 - 1, bytes([7]) * 16)]
    partition = hashing.partition_id(FLEET, PARTITION)
    chain = chains.Chain(FLEET, partition, REPLICA)
    write = Write("a", 1, payloads.DELETE, 2)
    run = chains.Run(chain, 1, chain.genesis, vector[:1], [chains.plain_change(chain, 1, 1, 1, [write])])
    credential = statements.make(FLEET, ROOT, 1, statements.rule("agency")).encoded
    hello = messages.hello_for(
        DEVICE, FLEET, NONCE, replica=REPLICA, own_commits=1_000, wall=-1, listen_port=41_234,
        authority=messages.authority_digest([hashing.sha256(b"2"), hashing.sha256(b"1")]),
        interest=messages.interest_digest([partition], ["user=", "agency="]), credentials=[credential, b"x"])
    request = messages.JoinRequest(FLEET, DEVICE_KEY, "anna", "Brücke", "officer", {"zone": "N", "agency": "Galápagos"})
    return {
        "hello": hello.signed(DEVICE, EXPORTER, is_dialer=True).encode(),
        "answer": messages.hello_for(DEVICE, FLEET, NONCE).signed(DEVICE, EXPORTER, is_dialer=False).encode(),
        "join_request": request.proved(ADMISSION, EXPORTER).encode(),
        "others": [
            messages.message(messages.JOIN_ACCEPTED),
            messages.message(messages.JOIN_REFUSED, 2),
            messages.message(messages.STATEMENT_IDS, [hashing.sha256(b"1")[:16], hashing.sha256(b"2")[:16]]),
            messages.message(messages.STATEMENTS, [credential]),
            messages.message(messages.STATEMENTS_COMPLETE),
            messages.message(messages.INTEREST_REQUEST),
            messages.message(messages.INTEREST, [partition], ["agency=", "user="]),
            messages.message(messages.INTEREST_CHANGE, [partition], [], [], ["user="]),
            messages.summary(EXPORTER, {partition: vector, bytes(32): vector[:1]}),
            messages.message(messages.VECTORS, [messages.partition_vector(PARTITION, vector)]),
            messages.message(messages.PULL, 3, messages.partition_vector(PARTITION, [], [(EXPORTER, 9)])),
            messages.message(
                messages.RUNS, PARTITION, 3, False, [[[0, [list(vector[0])]], run.encode(DEVICE)]]),
            messages.message(messages.PAYLOAD_PIECE, EXPORTER, 20_000, 5, b"piece"),
            messages.message(messages.HAVE, messages.partition_vector(PARTITION, vector)),
            messages.message(messages.CHAIN_PROBE, PARTITION, REPLICA, True, [[1, bytes(16)], [2, bytes(16)]]),
            messages.message(messages.PING, 2**64 - 1),
            messages.message(messages.PONG, 0),
            messages.message(messages.GOODBYE, 6),
        ],
    }  # fmt: skip


def make() -> str:
    content = {"identity": identity(), "statements": make_statements(), "runs": make_runs(), "messages": make_messages()}
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
