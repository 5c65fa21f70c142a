"""How two sides come to one set of statements: the steps alone, then whole handshakes of two stores, without a network."""

import random
import unittest
from dataclasses import dataclass, field

from make_vectors import EXPORTER, key
from seamesh_peer import exchange, hashing, messages, statements
from seamesh_peer.handshake import (
    AWAITING_CREDENTIALS, AWAITING_HELLO, AWAITING_INTEREST, EXCHANGING, NO_MARK, Goodbye, Handshake, joining_holds)
from seamesh_peer.messages import message
from seamesh_peer.session import Store

ROOT = key(1)
ROOT_KEY = hashing.public_key(ROOT)
FLEET = hashing.fleet_id(ROOT_KEY)


def chain(signer, count: int, after: statements.Statement | None = None, word: str = "agency") -> list:
    """`count` statements, each on the one before."""
    out = []
    for _ in range(count):
        after = statements.make(FLEET, signer, after, statements.rule(word))
        out.append(after)
    return out


# The steps alone


@dataclass
class Said:
    """Frames that one side has sent, with their lengths."""

    frames: list[bytes] = field(default_factory=list)

    def say(self, number: int, *items):
        self.frames.append(message(number, *items))

    def statements(self, lacking: list):
        self.frames += messages.statement_messages("", [item.encoded for item in lacking])
        self.say(messages.STATEMENTS_COMPLETE, "")

    @property
    def bytes(self) -> int:
        return sum(len(frame) + 4 for frame in self.frames)

    @property
    def statement_count(self) -> int:
        read = map(messages.read, self.frames)
        return sum(len(items[1]) for number, items in read if number == messages.STATEMENTS)


def join(held: list, brought: list) -> list:
    known = {item.id for item in held}
    return held + [item for item in brought if item.id not in known]


def compare(dialer: list, listener: list) -> tuple[Said, Said, list, list]:
    """What both say, and what both hold then, where the authority digests differ."""
    says, answers = Said(), Said()
    buckets = exchange.digests(exchange.tips(listener))
    answers.say(messages.STATEMENT_SET, "", exchange.BUCKETS, buckets)
    listing = exchange.tell(dialer, exchange.read_buckets(buckets))
    says.say(messages.STATEMENT_SET, "", exchange.TIPS, *listing.content)
    listing = exchange.read_listing(*listing.content)
    items = exchange.shown(exchange.wanted(listener, listing))
    answers.say(messages.STATEMENT_SET, "", exchange.WANTED, items)
    wanted = exchange.read_wanted(items, listing)
    # What the listener sends at once is under way when the dialer answers step 2.
    is_early = exchange.knows_all(listener, listing.told)
    from_listener = exchange.lacking_by_listing(listener, listing) if is_early else []
    from_dialer = exchange.lacking_by_wanted(dialer, wanted)
    says.statements(from_dialer)
    listener = join(listener, from_dialer)
    if not is_early:
        from_listener = exchange.lacking_by_listing(listener, listing)
    answers.statements(from_listener)
    return says, answers, join(dialer, from_listener), listener


class Steps(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = chain(ROOT, 10)
        cls.others = [chain(key(number), 4) for number in range(2, 12)]
        cls.all = cls.root + [item for each in cls.others for item in each]

    def assert_settles(self, dialer: list, listener: list, sent: tuple[int, int]) -> tuple[Said, Said]:
        """Both hold all then; `sent` are the statements that dialer and listener sent."""
        says, answers, dialer_has, listener_has = compare(dialer, listener)
        union = {item.id for item in dialer + listener}
        self.assertEqual({item.id for item in dialer_has}, union)
        self.assertEqual({item.id for item in listener_has}, union)
        self.assertEqual((says.statement_count, answers.statement_count), sent)
        return says, answers

    def test_tips_are_the_ends_of_all_branches(self):
        branch = chain(ROOT, 2, self.root[4], "user")
        found = exchange.tips(self.all + branch)
        self.assertEqual(found[ROOT_KEY], [(7, branch[-1].id), (10, self.root[-1].id)])
        self.assertEqual(list(found), sorted(found))
        self.assertEqual(len(found), 11)
        self.assertEqual(exchange.tips([]), {})

    def test_digests_of_buckets_hash_issuers_and_tips_as_said(self):
        self.assertEqual(exchange.digests({}), bytes(512))
        place = ROOT_KEY[0] >> 2
        content = exchange.digests(exchange.tips(self.root))
        expected = hashing.sha256(
            b"seamesh/1 author", ROOT_KEY, hashing.u(1, 8), hashing.u(10, 8), self.root[-1].id)[:8]
        self.assertEqual(content, bytes(8 * place) + expected + bytes(512 - 8 * place - 8))
        a, b = b"\x80" + bytes(31), b"\x83" + bytes(31)
        both = exchange.digests({b: [(1, a)], a: [(1, b), (2, a)]})
        expected = hashing.sha256(
            b"seamesh/1 author", a, hashing.u(2, 8), hashing.u(1, 8), b, hashing.u(2, 8), a, b, hashing.u(1, 8),
            hashing.u(1, 8), a)[:8]
        self.assertEqual(both[8 * 32 :][:8], expected)

    def test_equal_sets_list_all_buckets_and_send_nothing(self):
        listing = exchange.tell(self.all, exchange.digests(exchange.tips(self.all[::-1])))
        self.assertEqual(listing.content[0], b"\xff" * 8)
        self.assert_settles(self.all, self.all[::-1], (0, 0))

    def test_bits_of_buckets_count_from_the_low_end(self):
        listing = exchange.tell(self.root, bytes(512))
        self.assertEqual(int.from_bytes(listing.content[0], "big"), 1 << (ROOT_KEY[0] >> 2))

    def test_a_dialer_that_is_ahead_sends_what_is_new_alone(self):
        self.assert_settles(self.all, self.all[:-3], (3, 0))
        self.assert_settles(self.all, [item for item in self.all if item not in self.root[-3:]], (3, 0))

    def test_a_listener_that_is_ahead_sends_what_is_new_alone_and_hears_nothing(self):
        self.assert_settles(self.all[:-3], self.all, (0, 3))
        self.assert_settles([item for item in self.all if item not in self.root[-3:]], self.all, (0, 3))

    def test_a_listener_that_has_whole_issuers_more_hears_nothing(self):
        self.assert_settles(self.all[:-4], self.all, (0, 4))

    def test_both_lack_something(self):
        without = lambda part: [item for item in self.all if item not in part]
        # Each has a whole issuer more, then each is behind in one chain.
        self.assert_settles(without(self.others[0]), without(self.others[1]), (4, 4))
        self.assert_settles(without(self.others[0][2:]), without(self.others[1][3:]), (1, 2))

    def test_branches_of_one_chain(self):
        branch = chain(ROOT, 2, self.root[4], "user")
        # The dialer has both, the listener has both, each has one.
        self.assert_settles(self.all + branch, self.all, (2, 0))
        self.assert_settles(self.all, self.all + branch, (0, 2))
        stem = self.root[:5]
        self.assert_settles(self.root, stem + branch, (10, 2))
        # Branches off the first statement on.
        self.assert_settles(self.root, chain(ROOT, 3, None, "user"), (10, 3))

    def test_what_is_below_no_known_tip_is_sent_whole(self):
        listing = exchange.read_listing(b"\xff" * 8, [[ROOT_KEY, [[10, bytes(16)]]]])
        self.assertFalse(exchange.knows_all(self.root, listing.told))
        self.assertEqual(exchange.lacking_by_listing(self.root, listing), self.root)
        # A number that is another's, and a tip that is known beside.
        told = {ROOT_KEY: [(4, self.root[3].id[:16]), (5, self.root[3].id[:16])]}
        self.assertFalse(exchange.knows_all(self.root, told))
        self.assertEqual(exchange.lacking_by_wanted(self.root, told), self.root[4:])

    def test_an_empty_set(self):
        self.assert_settles([], self.all, (0, 50))
        self.assert_settles(self.all, [], (50, 0))
        self.assert_settles([], [], (0, 0))

    def test_step_2_names_issuers_of_whom_nothing_is_held(self):
        listing = exchange.tell(self.root, bytes(512))
        self.assertEqual(exchange.shown(exchange.wanted([], listing)), [[ROOT_KEY, []]])

    def test_any_two_sets_come_to_one(self):
        drawn = random.Random(7)
        for _ in range(200):
            trees = []
            for number in range(2, 2 + drawn.randrange(1, 5)):
                tree: list = []
                for _ in range(drawn.randrange(8)):
                    after = drawn.choice([None, *tree, *tree[-1:] * 3])
                    tree += chain(key(number), 1, after, drawn.choice(["agency", "user"]))
                trees += {item.id: item for item in tree}.values()
            sides = []
            for _ in range(2):
                chosen, by_id = {}, {item.id: item for item in trees}
                for item in drawn.sample(trees, drawn.randrange(len(trees) + 1)):
                    while item:
                        chosen[item.id], item = item, by_id.get(item.previous)
                sides.append(list(chosen.values()))
            _, _, dialer, listener = compare(*sides)
            union = {item.id for side in sides for item in side}
            self.assertEqual([{item.id for item in side} for side in (dialer, listener)], [union] * 2)

    def test_steps_that_are_out_of_form_are_refused(self):
        mask, (first, *_) = b"\xff" * 8, exchange.shown(exchange.tips(self.root))
        issuer, ((number, id),) = first
        later = [b"\xff" * 32, [[1, bytes(16)]]]
        exchange.read_listing(mask, [first, later])
        for mask, items in [
            (mask[1:], []), (None, []), (mask, None), (mask, [[issuer]]), (mask, [[issuer[1:], [[number, id]]]]),
            (mask, [[issuer, [[number, id + id]]]]), (mask, [[issuer, [[0, id]]]]), (mask, [[issuer, [[1 << 53, id]]]]),
            (mask, [[issuer, []]]), (mask, [later, first]), (mask, [first, first]), (bytes(8), [first]),
            (mask, [[issuer, [[2, id], [1, id]]]]), (mask, [[issuer, [[1, id], [1, id]]]]),
            (mask, [[issuer, [[1 + place, id] for place in range(exchange.LISTING_LIMIT)]]]),
        ]:
            with self.subTest(f"{mask}, {str(items)[:80]}"), self.assertRaises(ValueError):
                exchange.read_listing(mask, items)
        for content in (None, bytes(511), bytes(513)):
            with self.assertRaises(ValueError):
                exchange.read_buckets(content)
        none = exchange.Listing(frozenset(), {})
        with self.assertRaises(ValueError):
            exchange.read_wanted([first], none)

    def test_statements_are_sent_in_messages_of_bounded_size(self):
        sent = messages.statement_messages("", [bytes(100_000)] * 5 + [bytes(1_000_000), b"x"])
        self.assertEqual([len(messages.read(item)[1][1]) for item in sent], [2, 2, 1, 1, 1])
        self.assertEqual(messages.statement_messages("", []), [])


class TenThousand(unittest.TestCase):
    """What is said where two large sets differ in one statement; printed, and held to where it is small."""

    def measure(self, name: str, dialer: list, listener: list) -> tuple[int, int]:
        says, answers, dialer_has, listener_has = compare(dialer, listener)
        self.assertEqual({item.id for item in dialer_has}, {item.id for item in listener_has})
        print(
            f"\n{name}: dialer {says.bytes} B with {says.statement_count} statements, listener {answers.bytes} B with"
            f" {answers.statement_count}")
        return says.bytes, answers.bytes

    def test_one_chain(self):
        held = chain(ROOT, 10_000)
        self.assertLess(sum(self.measure("10,000 of one issuer, dialer ahead by one", held, held[:-1])), 2_048)
        self.assertLess(sum(self.measure("10,000 of one issuer, listener ahead by one", held[:-1], held)), 2_048)
        branch = chain(ROOT, 1, held[-2], "user")
        self.measure("10,000 of one issuer, other last ones", held, held[:-1] + branch)

    def test_many_issuers(self):
        held = [item for number in range(100) for item in chain(key(number), 100)]
        self.assertLess(sum(self.measure("10,000 of 100 issuers, dialer ahead by one", held, held[:-1])), 2_048)
        self.assertLess(sum(self.measure("10,000 of 100 issuers, listener ahead by one", held[:-1], held)), 2_048)
        # More issuers than statements that admit them there cannot be.
        keys = (hashing.SigningKey(hashing.sha256(b"%d" % number)) for number in range(5_000))
        single = [chain(key, 2)[index] for key in keys for index in range(2)]
        self.assertLess(sum(self.measure("10,000 of 5,000 issuers, dialer ahead by one", single, single[:-1])), 8_192)
        self.assertLess(sum(self.measure("10,000 of 5,000 issuers, listener ahead by one", single[:-1], single)), 8_192)


# Whole handshakes


class Fleet:
    """Statements of a small fleet, made as they are asked for."""

    def __init__(self):
        self.said: dict[bytes, list] = {}
        self.say(ROOT, statements.genesis("North"))

    def say(self, signer, content) -> statements.Statement:
        mine = self.said.setdefault(bytes(signer), [])
        mine.append(statements.make(FLEET, signer, mine[-1] if mine else None, content))
        return mine[-1]

    def admit(self, device, role: str = "crew", by=ROOT) -> statements.Statement:
        return self.say(by, statements.membership(hashing.public_key(device), "ann", "", role, {}))

    def all(self, *signers) -> list[statements.Statement]:
        return [item for signer in signers or self.said for item in self.said.get(bytes(signer), [])]

    def store(self, device, held: list) -> Store:
        store = Store(FLEET, device, [])
        store.keep_all([item.encoded for item in held])
        assert len(store.statements) == len(held)
        return store


ADMIN, OTHER_ADMIN, ANA, BEN = map(key, (2, 3, 4, 5))


class Handshakes(unittest.TestCase):
    """Two admins, each of whom admitted one device; ANA dials BEN."""

    def setUp(self):
        self.fleet = Fleet()
        self.fleet.admit(ADMIN, "admin")
        self.fleet.admit(OTHER_ADMIN, "admin")
        self.fleet.admit(ANA, by=ADMIN)
        self.fleet.admit(BEN, by=OTHER_ADMIN)
        self.everything = self.fleet.all()
        #: What a listener holds that does not know ANA.
        self.without_ana = self.fleet.all(ROOT)
        self.trace: list[tuple[bool, int]] = []
        self.frames: list[bytes] = []

    def pair(self, dialer: Store, listener: Store, **fields) -> tuple[Handshake, Handshake]:
        public = hashing.public_key
        return (
            Handshake(dialer, EXPORTER, public(listener.key), True, **fields),
            Handshake(listener, EXPORTER, public(dialer.key), False))

    def run_through(self, dialer: Handshake, listener: Handshake):
        """Until neither has anything more to say."""
        under_way = [(True, frame) for frame in dialer.begin()]
        while under_way:
            by_dialer, frame = under_way.pop(0)
            number, items = messages.read(frame)
            self.trace.append((by_dialer, number))
            self.frames.append(frame)
            answers = (listener if by_dialer else dialer).take(number, items)
            under_way += [(not by_dialer, each) for each in answers]

    def meet(self, dialer: Store, listener: Store, **fields) -> tuple[Handshake, Handshake]:
        pair = self.pair(dialer, listener, **fields)
        self.run_through(*pair)
        return pair

    def said(self, by_dialer: bool) -> list[int]:
        return [number for is_dialers, number in self.trace if is_dialers is by_dialer]

    def assert_is_turned_away(self, reason: int, pair):
        with self.assertRaises(Goodbye) as turned:
            self.run_through(*pair)
        self.assertEqual(turned.exception.reason, reason)

    def test_equal_sets_are_two_hellos(self):
        dialer, listener = self.meet(self.fleet.store(ANA, self.everything), self.fleet.store(BEN, self.everything))
        self.assertEqual(self.trace, [(True, messages.HELLO), (False, messages.HELLO)])
        self.assertEqual((dialer.phase, listener.phase), (AWAITING_INTEREST,) * 2)

    def test_what_differs_goes_both_ways(self):
        one = self.fleet.store(ANA, self.everything)
        other = self.fleet.store(BEN, self.everything)
        for store in (one, other):
            store.declare_replica(bytes(16))
        dialer, listener = self.meet(one, other)
        self.assertEqual(one.authority, other.authority)
        self.assertEqual(len(one.statements), len(self.everything) + 2)
        self.assertEqual((dialer.phase, listener.phase), (AWAITING_INTEREST,) * 2)
        step, some, complete = messages.STATEMENT_SET, messages.STATEMENTS, messages.STATEMENTS_COMPLETE
        self.assertEqual(self.said(True), [messages.HELLO, step, some, complete])
        self.assertEqual(self.said(False), [messages.HELLO, step, step, some, complete])

    def test_nothing_of_a_hello_names_the_fleet_or_what_is_held(self):
        store = self.fleet.store(ANA, self.everything)
        self.meet(store, self.fleet.store(BEN, self.everything), interest=bytes(range(32)))
        for hidden in (FLEET, store.authority, store.device, bytes(range(32))):
            self.assertTrue(all(hidden[:16] not in frame for frame in self.frames))

    # Strangers

    def test_another_fleet_gets_a_goodbye(self):
        other = Store(bytes(32), ANA, [])
        self.assert_is_turned_away(messages.OTHER_FLEET, self.pair(other, self.fleet.store(BEN, self.everything)))
        self.assertEqual(self.said(False), [])

    def test_a_hello_under_another_key_breaks_the_protocol(self):
        pair = self.pair(self.fleet.store(ANA, self.everything), self.fleet.store(BEN, self.everything), key=ADMIN)
        self.assert_is_turned_away(messages.PROTOCOL_ERROR, pair)

    def test_a_hello_said_back_does_not_pass(self):
        dialer, listener = self.pair(
            self.fleet.store(ANA, self.everything), self.fleet.store(BEN, self.everything))
        own, = dialer.begin()
        with self.assertRaises(Goodbye) as turned:
            dialer.take(*messages.read(own))
        self.assertEqual(turned.exception.reason, messages.OTHER_FLEET)

    def test_who_dials_himself_is_told(self):
        store = self.fleet.store(ANA, self.everything)
        dialer, listener = self.pair(store, store)
        listener.instance = dialer.instance
        self.assert_is_turned_away(messages.OWN_CONNECTION, (dialer, listener))

    def test_no_member_of_an_equal_set_is_not_asked(self):
        stranger = self.fleet.store(key(9), self.everything)
        self.assert_is_turned_away(messages.NOT_A_MEMBER, self.pair(stranger, self.fleet.store(BEN, self.everything)))
        self.assertEqual(self.said(False), [])

    def test_no_member_of_another_set_is_asked_and_has_nothing_to_show(self):
        stranger = self.fleet.store(key(9), self.fleet.all(ROOT))
        self.assert_is_turned_away(messages.NOT_A_MEMBER, self.pair(stranger, self.fleet.store(BEN, self.everything)))
        self.assertEqual(self.said(False), [messages.CREDENTIAL_REQUEST])

    def test_a_dialer_turns_away_a_listener_that_is_no_member(self):
        stranger = self.fleet.store(key(9), self.everything)
        pair = self.pair(self.fleet.store(ANA, self.everything), stranger)
        self.assert_is_turned_away(messages.NOT_A_MEMBER, pair)
        self.assertEqual(self.said(True), [messages.HELLO])

    # Credentials

    def test_two_that_were_admitted_elsewhere_ask_one_another(self):
        one = self.fleet.store(ANA, self.fleet.all(ROOT, ADMIN))
        other = self.fleet.store(BEN, self.fleet.all(ROOT, OTHER_ADMIN))
        dialer, listener = self.meet(one, other)
        self.assertEqual((dialer.phase, listener.phase), (AWAITING_INTEREST,) * 2)
        self.assertEqual(one.authority, other.authority)
        self.assertEqual(set(one.statements), {item.id for item in self.everything})
        step, some, complete = messages.STATEMENT_SET, messages.STATEMENTS, messages.STATEMENTS_COMPLETE
        ask, show = messages.CREDENTIAL_REQUEST, messages.CREDENTIALS
        self.assertEqual(self.said(True), [messages.HELLO, show, ask, step, some, complete])
        self.assertEqual(self.said(False), [ask, messages.HELLO, step, show, step, some, complete])
        # The listener sends none before the dialer's are here.
        spoken = [is_dialers for is_dialers, number in self.trace if number == some]
        self.assertEqual(spoken, [True, False])

    def test_credentials_are_the_membership_and_that_of_the_admin_who_signed_it(self):
        store = self.fleet.store(ANA, self.everything)
        own, admins = map(statements.read, store.credentials())
        self.assertEqual((own.body[0], admins.body[:2]), (store.device, [own.issuer, "admin"]))
        self.assertEqual(len(self.fleet.store(ADMIN, self.everything).credentials()), 1)
        self.assertEqual(self.fleet.store(key(9), self.everything).credentials(), [])

    def test_a_wrong_proof_gets_a_goodbye(self):
        for is_dialer in (True, False):
            dialer, listener = self.pair(
                self.fleet.store(ANA, self.everything), self.fleet.store(BEN, self.fleet.all(ROOT, OTHER_ADMIN)))
            asked = dialer
            if not is_dialer:
                asked = listener
                listener.store = self.fleet.store(BEN, self.fleet.all(ROOT, ADMIN))
                listener.take(*messages.read(dialer.begin()[0]))
                self.assertEqual(listener.phase, EXCHANGING)
            # That of the one who is asked, as it would be said back.
            proof = messages.fleet_proof(FLEET, EXPORTER, is_dialer)
            with self.assertRaises(Goodbye) as turned:
                asked.take(messages.CREDENTIAL_REQUEST, [proof])
            self.assertEqual(turned.exception.reason, messages.OTHER_FLEET)
            asked.take(messages.CREDENTIAL_REQUEST, [messages.fleet_proof(FLEET, EXPORTER, not is_dialer)])
            with self.assertRaises(Goodbye) as turned:
                asked.take(messages.CREDENTIAL_REQUEST, [messages.fleet_proof(FLEET, EXPORTER, not is_dialer)])
            self.assertEqual(turned.exception.reason, messages.PROTOCOL_ERROR)

    def judge(self, brought: list, device=ANA, known: list = ()) -> int | None:
        """The reason of the goodbye that a listener has for these credentials."""
        store = self.fleet.store(BEN, list(known) or self.without_ana)
        dialer, listener = self.pair(Store(FLEET, device, []), store)
        request, = listener.take(*messages.read(dialer.begin()[0]))
        self.assertEqual(messages.read(request)[0], messages.CREDENTIAL_REQUEST)
        self.assertEqual(listener.phase, AWAITING_CREDENTIALS)
        try:
            listener.take(messages.CREDENTIALS, [brought])
        except Goodbye as goodbye:
            return goodbye.reason
        self.assertEqual(listener.phase, EXCHANGING)

    def test_which_credentials_hold(self):
        by_root = self.fleet.admit(key(6)).encoded
        admins, own = (item.encoded for item in (self.everything[1], self.fleet.all(ADMIN)[0]))
        self.assertIsNone(self.judge([by_root], key(6)))
        self.assertIsNone(self.judge([own, admins]))
        self.assertIsNone(self.judge([admins, own]))
        # The admin is known here.
        self.assertIsNone(self.judge([own]))
        stranger = self.fleet.admit(key(7), by=key(8)).encoded
        second = self.fleet.admit(key(7), "admin", by=ADMIN).encoded
        crew = self.fleet.admit(key(7), by=ANA).encoded
        turned = bytes([*own[:-1], own[-1] ^ 1])
        for brought, device in [
            ([], ANA), ([own], BEN), ([stranger], key(7)), ([second, admins], key(7)), ([crew, own, admins], key(7)),
            ([turned, admins], ANA), ([own[:-1]], ANA),
        ]:
            self.assertEqual(self.judge(brought, device), messages.NOT_A_MEMBER)
        for brought in ([own] * 5, None, [1]):
            self.assertEqual(self.judge(brought), messages.PROTOCOL_ERROR)

    def test_an_end_that_is_known_here_speaks_against_credentials(self):
        admins, own = self.everything[1], self.fleet.all(ADMIN)[0]
        for target, ended in [(admins, hashing.public_key(ADMIN)), (own, hashing.public_key(ANA))]:
            with self.subTest(target.kind):
                tips = [["", [[ended, 0, bytes(32)]]]]
                fleet = Fleet()
                fleet.said = {signer: list(said) for signer, said in self.fleet.said.items()}
                fleet.say(ROOT, statements.end(2, [0, target.id], tips=tips))
                brought = [own.encoded, admins.encoded]
                self.assertEqual(self.judge(brought, known=fleet.all(ROOT)), messages.NOT_A_MEMBER)

    def test_who_is_no_member_by_the_set_is_turned_away_then(self):
        listener = self.fleet.store(BEN, self.fleet.all(ROOT, OTHER_ADMIN))
        pair = self.pair(self.fleet.store(ANA, self.fleet.all(ROOT, ADMIN)), listener)
        tips = [["", [[hashing.public_key(ADMIN), 0, bytes(32)]]]]
        end = self.fleet.say(ROOT, statements.end(2, [0, self.everything[1].id], tips=tips))
        request, = pair[1].take(*messages.read(pair[0].begin()[0]))
        shown, = pair[0].take(*messages.read(request))
        self.frames = pair[1].take(*messages.read(shown))
        # The end of the admin comes from elsewhere after the credentials were judged.
        listener.keep_all([end.encoded])
        under_way = [(False, each) for each in self.frames]
        with self.assertRaises(Goodbye) as turned:
            while under_way:
                by_dialer, frame = under_way.pop(0)
                answers = pair[by_dialer].take(*messages.read(frame))
                under_way += [(not by_dialer, each) for each in answers]
        self.assertEqual(turned.exception.reason, messages.NOT_A_MEMBER)
        self.assertIn(self.fleet.all(ADMIN)[0].id, listener.statements)

    # Turns

    def test_what_is_out_of_turn_breaks_the_protocol(self):
        store, other = self.fleet.store(ANA, self.everything), self.fleet.store(BEN, self.everything)
        other.declare_replica(bytes(16))
        zeros, proof = bytes(512), messages.fleet_proof(FLEET, EXPORTER, True)
        out_of_turn = {
            AWAITING_HELLO: [
                (messages.CREDENTIAL_REQUEST, [proof]), (messages.STATEMENT_SET, ["", 0, zeros]),
                (messages.STATEMENTS, ["", []]), (messages.CREDENTIALS, [[]])],
            EXCHANGING: [
                (messages.HELLO, []), (messages.STATEMENT_SET, ["", 0, zeros]), (messages.STATEMENT_SET, ["", 2, []]),
                (messages.STATEMENT_SET, ["", 3]), (messages.STATEMENTS_COMPLETE, [""]), (messages.CREDENTIALS, [[]]),
                (messages.STATEMENTS_COMPLETE, []), (messages.STATEMENTS, [[]]), (messages.STATEMENTS, [0, []]),
                (messages.STATEMENTS, ["x" * 256, []])],
        }  # fmt: skip
        for phase, cases in out_of_turn.items():
            for number, items in cases:
                with self.subTest(f"{phase}: {number}"), self.assertRaises(Goodbye) as turned:
                    dialer, listener = self.pair(store, other)
                    if phase == EXCHANGING:
                        listener.take(*messages.read(dialer.begin()[0]))
                    self.assertEqual(listener.phase, phase)
                    listener.take(number, items)
                self.assertEqual(turned.exception.reason, messages.PROTOCOL_ERROR)

    def test_messages_from_64_on_and_early_runs_are_passed_over(self):
        store = self.fleet.store(ANA, self.everything)
        dialer, listener = self.pair(store, store)
        for number in (64, 65_536, messages.RUNS):
            self.assertEqual(listener.take(number, [None]), [])
        for number in (messages.CREDENTIALS + 1, 63):
            with self.assertRaises(Goodbye):
                listener.take(number, [])

    def test_a_scope_that_nobody_here_wants_is_ignored(self):
        store, other = self.fleet.store(ANA, self.everything), self.fleet.store(BEN, self.everything)
        other.declare_replica(bytes(16))
        dialer, listener = self.pair(store, other)
        listener.take(*messages.read(dialer.begin()[0]))
        room = "conversation=1"
        for number, items in [
            (messages.STATEMENT_SET, [room, 0, bytes(512)]), (messages.STATEMENTS, [room, [b"x"]]),
            (messages.STATEMENTS_COMPLETE, [room])]:
            self.assertEqual(listener.take(number, items), [])
        self.assertEqual(listener.phase, EXCHANGING)

    def test_which_statements_are_kept_skipped_and_refused(self):
        store = self.fleet.store(ANA, self.everything)
        before = set(store.statements)
        last = self.fleet.all(ROOT)[-1]
        rule = statements.make(FLEET, ROOT, last, statements.rule("agency"))
        for wrong in [
            statements.make(bytes(32), ROOT, last, statements.rule("agency")).encoded,
            statements.make(FLEET, ROOT, None, (statements.LEAVE, [bytes(32), "ann", []]), "conversation=1").encoded,
            # A room's creation belongs to the room, whatever is signed.
            statements.make(FLEET, ROOT, None, (statements.ROOM, [bytes(32)])).encoded,
            statements.make(FLEET, ROOT, last, (statements.GRANT, [7])).encoded,
            rule.encoded[:-1], b"", b"\x01", b"\x80", bytes([*rule.encoded[:-1], rule.encoded[-1] ^ 1]),
        ]:
            with self.assertRaises(ValueError):
                store.keep_all([wrong])
        store.keep_all([statements.values.encode([2, "whatever comes"]), chain(key(9), 1)[0].encoded])
        self.assertEqual(set(store.statements), before)
        store.keep_all([rule.encoded])
        self.assertEqual(set(store.statements), before | {rule.id})

    # Order

    def test_statements_are_ordered_by_what_they_stand_on(self):
        replica = statements.replica(hashing.public_key(ANA), bytes(16), self.fleet.all(ADMIN)[0].id)
        self.fleet.say(ANA, replica)
        tips = [["", [[hashing.public_key(ANA), 1, self.fleet.all(ANA)[0].id]]]]
        self.fleet.say(ADMIN, statements.end(0, [0, self.fleet.all(ADMIN)[0].id], tips=tips))
        held = self.fleet.all()
        for order in (held, held[::-1], sorted(held, key=lambda item: item.id)):
            ordered = exchange.in_order(order, ROOT_KEY)
            self.assertEqual(len(ordered), len(held))
            store = Store(FLEET, BEN, [])
            for count, item in enumerate(ordered, 1):
                store.keep_all([item.encoded])
                self.assertEqual(len(store.statements), count)
        stray = chain(key(9), 2)
        self.assertEqual(len(exchange.in_order(held + stray, ROOT_KEY)), len(held))

    # One that lost its statements

    def test_a_member_that_lost_its_statements_gets_all(self):
        listener = self.fleet.store(BEN, self.everything)
        lost = Store(FLEET, ANA, [])
        dialer, other = self.pair(lost, listener, has_lost=True)
        hello = messages.Hello.read(messages.read(dialer.begin()[0])[1])
        self.assertEqual(hello.authority, NO_MARK)
        self.run_through(dialer, other)
        self.assertEqual(self.said(True), [messages.HELLO, messages.STATEMENT_SET])
        self.assertEqual(messages.read(self.frames[3])[1], ["", exchange.TIPS, b"\xff" * 8, []])
        self.assertTrue(dialer.is_through)
        self.assertEqual(lost.authority, listener.authority)
        self.assertTrue(joining_holds(lost))

    def test_one_that_nobody_here_admitted_has_nothing_to_show_then(self):
        listener = self.fleet.store(BEN, self.fleet.all(ROOT, OTHER_ADMIN))
        pair = self.pair(Store(FLEET, ANA, []), listener, has_lost=True)
        self.assert_is_turned_away(messages.NOT_A_MEMBER, pair)
        self.assertEqual(self.said(False), [messages.CREDENTIAL_REQUEST])


if __name__ == "__main__":
    unittest.main()
