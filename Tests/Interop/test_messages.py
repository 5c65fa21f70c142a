"""The examples of session messages in Docs/PROTOCOL.md, made again from what the page says of them."""

import unittest
from dataclasses import replace

import documentation
from seamesh_peer import exchange, messages, statements, values
from seamesh_peer.hashing import sha256, tag
from seamesh_peer.messages import message

FLEET, PARTITION, REPLICA, OTHER = b"\x11" * 32, b"\x22" * 32, bytes(range(1, 17)), bytes(range(0xA0, 0xB0))
DEVICE, EXPORTER, LARGE = b"\x99" * 32, b"\xee" * 32, b"\x77" * 32
AUTHORITY = b"\xd1" * 32
SIGNATURE = b"\x55" * 32 + b"\x66" * 32
NAME = "agency=Gabon"


def tip(high: int, low: int) -> bytes:
    return high.to_bytes(8, "big") + low.to_bytes(8, "big")


TIP = tip(1, 2)
VECTOR = [(OTHER, 9, TIP)]
GONE = bytes(range(0xB0, 0xC0))
TOLD = [(OTHER, 8, TIP), (GONE, 3, bytes(7) + b"\x03" + bytes(7) + b"\x04")]
FORKS = [(OTHER, 7, b"\x21" * 32, b"\x32" * 32)]
ABOVE = [(bytes(range(1, 17)), 9, bytes(7) + b"\x03" + bytes(7) + b"\x04")]


def examples(golden: dict[str, bytes]) -> dict[str, bytes]:
    """`golden` has the statements and runs that some messages carry."""
    prefixes = ["agency=", "user="]
    interest = messages.interest_digest([PARTITION], prefixes)
    hello = messages.hello_for(
        FLEET, EXPORTER, True, tip(5, 6), wall=1_700_000_000_000, listen_port=41_234, authority=AUTHORITY,
        interest=interest, signature=SIGNATURE)
    code = bytes([0xC0]) * 32
    request = messages.JoinRequest(
        FLEET, bytes([0x77]) * 32, 3, DEVICE, "tablet 3", code,
        fleet_proof=messages.fleet_proof(FLEET, EXPORTER, is_dialer=True))
    extended = replace(request, extensions={9: bytes([1, 2])})
    vector = messages.partition_vector(NAME, VECTOR)
    runs = [
        [[0, [list(VECTOR[0])]], golden["run-single"]],
        [[1, [[OTHER, 0]]], golden["run-sealed"]],
    ]
    return {
        "message-hello": hello.encode(),
        "hello-signed-bytes": hello.signed_bytes(EXPORTER, True, DEVICE),
        "fleet-proof": messages.fleet_proof(FLEET, EXPORTER, is_dialer=True),
        "mark-authority": messages.mark(FLEET, EXPORTER, True, messages.AUTHORITY, AUTHORITY),
        "interest-digest": interest,
        "message-join-request": extended.encode(),
        "join-proved-bytes": request.proved_bytes(messages.JOINER, EXPORTER, {}),
        "join-answer-bytes": request.proved_bytes(messages.INVITER, EXPORTER, {}),
        "message-join-accepted": message(messages.JOIN_ACCEPTED, code, {}),
        "message-join-refused": message(messages.JOIN_REFUSED, 5, "office"),
        **statement_sets(golden),
        "message-statements": message(messages.STATEMENTS, "", [golden["statement-rule"]]),
        "message-statements-complete": message(messages.STATEMENTS_COMPLETE, ""),
        "message-interest-request": message(messages.INTEREST_REQUEST),
        "message-interest": message(messages.INTEREST, [PARTITION], prefixes),
        "message-interest-change": message(messages.INTEREST_CHANGE, [], ["all-"], [PARTITION], []),
        "vector-digest": messages.vector_digest(VECTOR),
        "forked-partition-digest": messages.partition_digest(VECTOR, FORKS),
        "held-partition-digest": messages.partition_digest(VECTOR, FORKS, ABOVE),
        "room-partition-digest": messages.room_digest(
            messages.partition_digest(VECTOR, FORKS, ABOVE), [32 * b"\xcc", 32 * b"\xbb"]),
        "document-state-hash": sha256(tag("etag"), golden["document-state"]),
        **summaries(),
        "message-vectors": message(messages.VECTORS, [vector]),
        "message-vectors-part": message(messages.VECTORS, [messages.partition_vector(NAME, VECTOR, has_more=True)]),
        "message-pull": message(messages.PULL, 2, vector),
        "message-pull-staged": message(messages.PULL, 3, messages.partition_vector(NAME, VECTOR, [(LARGE, 65_536)])),
        "message-pull-differing": message(
            messages.PULL, 4, messages.differing(NAME, VECTOR, TOLD), messages.vector_mark(TOLD)),
        "message-runs": message(messages.RUNS, NAME, 2, False, runs),
        "message-payload-piece": message(messages.PAYLOAD_PIECE, NAME, 2, LARGE, 65_539, 65_536, bytes([7, 8, 9])),
        "message-have": message(messages.HAVE, vector),
        "message-chain-probe": message(
            messages.CHAIN_PROBE, NAME, REPLICA, True, [[64, bytes(16)], [65, TIP]]),
        "message-ping": message(messages.PING, 2**64 - 1),
        "message-pong": message(messages.PONG, 2**64 - 1),
        "message-neighbours": message(
            messages.NEIGHBOURS, *(b"".join(mark.to_bytes(8) for mark in marks) for marks in ([1, 256], [2]))),
        "message-push-choice": message(
            messages.PUSH_CHOICE, NAME, [REPLICA], [bytes(15) + b"\x05", OTHER], []),
        "message-goodbye": message(messages.GOODBYE, 3),
        # Of the listener, who asks first.
        "message-credential-request": message(
            messages.CREDENTIAL_REQUEST, messages.fleet_proof(FLEET, EXPORTER, is_dialer=False)),
        "message-credentials": message(messages.CREDENTIALS, [golden["statement-membership"]]),
        **holdings(),
    }  # fmt: skip


def holdings() -> dict[str, bytes]:
    """Two records, the second as what differs from the first; and the questions about them."""
    whole = [[REPLICA, 3, tip(3, 4)], [OTHER, 9, TIP]]
    told = [
        [NAME, DEVICE, 0, 7, 0, [0, whole], [REPLICA, 4], SIGNATURE],
        [NAME, DEVICE, 2, 9, 7, [1, [[REPLICA, 0], [OTHER, 12, tip(5, 6)]]], None, SIGNATURE],
    ]
    numbers = b"".join(
        DEVICE + kind.to_bytes(8, "big") + number.to_bytes(8, "big") for kind, number in ((0, 7), (2, 9)))
    total = sha256(tag("heldsu"), PARTITION, numbers)[:8]

    def question(step: int, content) -> bytes:
        return message(messages.HOLDINGS_QUESTION, step, content)

    listed = [int.from_bytes(PARTITION[:8], "big"), int.from_bytes(total, "big")]
    known = [NAME, [[DEVICE, 0, 7], [DEVICE, 2, 9]]]
    return {
        "message-holdings": message(messages.HOLDINGS, told),
        "holdings-sum-digest": total,
        "message-holdings-sum": question(0, listed[1]),
        "message-holdings-sum-answer": question(1, listed[1]),
        "message-holdings-list": question(2, [listed]),
        "message-holdings-known": question(3, [known]),
        "message-holdings-known-back": question(4, [known]),
        "message-holdings-fresh": question(5, [NAME]),
    }  # fmt: skip


def statement_sets(golden: dict[str, bytes]) -> dict[str, bytes]:
    """The dialer holds the rule, the listener the grant, which goes on from the same statement of their issuer."""
    rule, grant = (
        statements.Statement(*values.decode(golden[name])[1:], golden[name])
        for name in ("statement-rule", "statement-grant"))
    buckets = exchange.digests(exchange.tips([grant]))
    listing = exchange.tell([rule], buckets)
    wanted = exchange.wanted([grant], listing)

    def step(step: int, *content) -> bytes:
        return message(messages.STATEMENT_SET, "", step, *content)

    return {
        "message-statement-set-buckets": step(exchange.BUCKETS, buckets),
        "message-statement-set-tips": step(exchange.TIPS, *listing.content),
        "message-statement-set-wanted": step(exchange.WANTED, exchange.shown(wanted)),
    }


def summaries() -> dict[str, bytes]:
    digests, forked = ({PARTITION: messages.partition_digest(VECTOR, forks)} for forks in ([], FORKS))
    place = messages.bucket(PARTITION)

    def step(step: int, *content) -> bytes:
        return message(messages.SUMMARY, 3, step, *content)

    return {
        "message-summary": step(messages.DIGEST, messages.words([sum(messages.sums(EXPORTER, digests))])),
        "message-summary-forked": step(messages.DIGEST, messages.words([sum(messages.sums(EXPORTER, forked))])),
        "message-summary-equal": step(messages.EQUAL),
        "message-summary-buckets": step(messages.BUCKETS, messages.words(messages.sums(EXPORTER, digests))),
        "message-summary-partitions": step(
            messages.PARTITIONS, messages.words([(1 << 64) - 1 - (1 << place)]),
            [messages.listing(EXPORTER, digests, place)]),
        "message-summary-differing": step(messages.DIFFERING, PARTITION[:8]),
    }  # fmt: skip


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.golden = documentation.golden()

    def named(self, name: str) -> bytes:
        if name not in self.golden:
            self.fail(f"Docs/PROTOCOL.md has no block {name}")
        return self.golden[name]

    def test_every_message_has_its_example_and_is_made_as_there(self):
        made = examples(self.golden)
        for name, content in made.items():
            with self.subTest(name):
                self.assertEqual(self.named(name).hex(), content.hex())
        numbers = {messages.read(content)[0] for name, content in made.items() if name.startswith("message-")}
        self.assertEqual(numbers, {*range(messages.HOLDINGS_QUESTION + 1), messages.NEIGHBOURS, messages.PUSH_CHOICE})

    def test_every_block_of_a_message_is_made_here(self):
        blocks = {name for name in self.golden if name.startswith("message-")}
        self.assertEqual(blocks - set(examples(self.golden)), set())

    def test_the_example_of_a_hello_reads_back(self):
        number, items = messages.read(self.named("message-hello"))
        self.assertEqual(number, messages.HELLO)
        self.assertEqual(messages.Hello.read(items).encode(), self.golden["message-hello"])

    def test_the_examples_of_statement_sets_read_back(self):
        steps = {}
        for name in ("buckets", "tips", "wanted"):
            number, (scope, step, *content) = messages.read(self.named(f"message-statement-set-{name}"))
            self.assertEqual((number, scope), (messages.STATEMENT_SET, ""))
            steps[step] = content
        self.assertEqual(list(steps), [exchange.BUCKETS, exchange.TIPS, exchange.WANTED])
        exchange.read_buckets(*steps[exchange.BUCKETS])
        listing = exchange.read_listing(*steps[exchange.TIPS])
        self.assertEqual(listing.content, steps[exchange.TIPS])
        items, = steps[exchange.WANTED]
        self.assertEqual(exchange.shown(exchange.read_wanted(items, listing)), items)


if __name__ == "__main__":
    unittest.main()
