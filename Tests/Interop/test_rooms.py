"""Statements of rooms between peers of this implementation, without a network: who hears what, and what it takes."""

import random
import unittest
from collections import deque
from unittest import mock

from make_vectors import EXPORTER, key
from seamesh_peer import exchange, hashing, messages, payloads, rooms, session, statements
from seamesh_peer.payloads import Operation, Write
from seamesh_peer.session import Session, Store

ROOT = key(1)
FLEET = hashing.fleet_id(hashing.public_key(ROOT))
USERS = {"ann": key(2), "ben": key(3), "cat": key(4), "relay": key(5)}


class End:
    """One end of a connection that keeps what it is sent until it is asked for it."""

    exporter = EXPORTER

    def __init__(self, peer: bytes):
        self.peer, self.inbox = peer, deque()

    def send(self, frame: bytes):
        self.other.inbox.append(frame)

    def receive(self, _: float) -> bytes:
        if not self.inbox:
            raise TimeoutError("silence")
        return self.inbox.popleft()

    def close(self):
        pass


class Said(tuple):
    """(who, number, items, bytes) of one message."""

    by, number, items, bytes = (property(lambda self, place=place: self[place]) for place in range(4))


class World:
    """A fleet in which each user has one device, and rooms are allowed. Devices want every room that is made."""

    def __init__(self):
        self.said = [statements.make(FLEET, ROOT, None, statements.genesis("North"))]
        for user, device in USERS.items():
            self.say(statements.membership(hashing.public_key(device), user, "", "crew", {}))
        self.say(statements.rule("conversation"))
        self.stores = {user: self.store(user) for user in USERS}
        self.sessions: list[Session] = []
        self.trace: list[Said] = []

    def say(self, kind_and_body):
        """By root, to nobody yet."""
        self.said.append(statements.make(FLEET, ROOT, self.said[-1], kind_and_body))

    def store(self, user: str) -> Store:
        store = Store(FLEET, USERS[user], [])
        store.keep_all([item.encoded for item in self.said])
        return store

    def tell_all(self):
        for store in self.stores.values():
            store.keep_all([item.encoded for item in self.said])

    def __getattr__(self, user: str) -> Store:
        return self.stores[user]

    def room(self, by: str = "ann") -> str:
        name = self.stores[by].make_room()
        for store in self.stores.values():
            store.want(name)
        return name

    def invite(self, by: str, user: str, name: str, seen=()) -> statements.Statement:
        return self.stores[by].sign(statements.invitation(self.stores[by].membership().id, user, seen), name)

    def remove(self, by: str, user: str, name: str, **fields) -> statements.Statement:
        return self.stores[by].sign(statements.removal(self.stores[by].membership().id, user, **fields), name)

    def leave(self, user: str, name: str, seen=()) -> statements.Statement:
        return self.stores[user].sign(statements.leave(self.stores[user].membership().id, user, seen), name)

    def write(self, user: str, name: str, id: str):
        store = self.stores[user]
        if store.replica is None:
            declared = store.declare_replica(store.device[:16])
            for other in self.stores.values():
                other.keep_all([declared.encoded])
        store.write(name, [Write("Message", id, payloads.CREATE, 1, [Operation(payloads.SET, ["by"], user)])])

    def connect(self, dialer: str, listener: str) -> tuple[Session, Session]:
        """Both ends, through with all that they have to say."""
        ends = End(self.stores[listener].device), End(self.stores[dialer].device)
        ends[0].other, ends[1].other = ends[1], ends[0]
        pair = Session(self.stores[dialer], ends[0]), Session(self.stores[listener], ends[1], is_dialer=False)
        for one in pair:
            one.prepare()
        self.sessions += pair
        pair[0].send_all(pair[0].handshake.begin())
        self.run()
        return pair

    def meet(self, dialer: str, listener: str):
        """A session that ends when nothing more is said; what was said on it."""
        start = len(self.trace)
        self.part(*self.connect(dialer, listener))
        return self.trace[start:]

    def part(self, *pair: Session):
        self.sessions = [item for item in self.sessions if item not in pair]

    def run(self):
        """Until nobody has anything more to say."""
        while True:
            for item in self.sessions:
                item.pass_on()
            ready = [item for item in self.sessions if item.channel.inbox]
            if not ready:
                return
            for item in ready:
                frame = item.channel.inbox[0]
                number, content = messages.read(frame)
                by = next(user for user, store in self.stores.items() if store.device == item.channel.peer)
                self.trace.append(Said((by, number, content, len(frame) + 4)))
                item.step()

    def held(self, user: str, name: str) -> set[bytes]:
        return {item.id for item in self.stores[user].room(name)}


def of_rooms(trace: list[Said]) -> list[tuple]:
    """Who said what of a room: the step of a `statementSet`, or how many statements."""
    out = []
    for said in trace:
        if said.number in session.OF_SCOPES and said.items[0]:
            what = said.items[1] if said.number == messages.STATEMENT_SET else [len(said.items[1])]
            out.append((said.by, what))
    return out


def numbers(trace: list[Said]) -> list[tuple]:
    return [(said.by, said.number) for said in trace]


def count(name: str, trace: list[Said]):
    """Prints what a session took."""
    each = {user: sum(said.bytes for said in trace if said.by == user) for user in {said.by for said in trace}}
    of_the_room = sum(said.bytes for said in trace if said.number in session.OF_SCOPES)
    print(f"\n{name}: {len(trace)} messages, {each}, of the room {of_the_room} B: {of_rooms(trace)}")


HELLO, SUMMARY = messages.HELLO, messages.SUMMARY


class Case(unittest.TestCase):
    def setUp(self):
        self.world = World()

    def assert_alike(self, name: str, *users: str):
        held = [self.world.held(user, name) for user in users]
        self.assertTrue(held[0])
        for other in held[1:]:
            self.assertEqual(other, held[0])


class Rooms(Case):
    """ann's rooms, into which she invites ben, and sometimes cat."""

    def setUp(self):
        super().setUp()
        self.name = self.world.room()
        self.invitation = self.world.invite("ann", "ben", self.name)

    def lacking(self, user: str) -> set[bytes]:
        """What ann has of the room and the user has not."""
        return self.world.held("ann", self.name) - self.world.held(user, self.name)

    def invitations_of(self, *users: str) -> set[bytes]:
        held = (item for item in self.world.ann.room(self.name) if item.kind == statements.INVITATION)
        return {item.id for item in held if item.body[1] in users}

    # Found by comparisons

    def test_who_is_invited_gets_all_of_the_room_whoever_dials(self):
        for dialer, listener in [("ann", "ben"), ("ben", "ann")]:
            with self.subTest(dialer):
                self.setUp()
                trace = self.world.meet(dialer, listener)
                self.assert_alike(self.name, "ann", "ben")
                self.assertTrue(self.world.ben.may_carry(self.world.ben.device, self.name))
                # She tells her tips; he lacks all.
                self.assertEqual(of_rooms(trace), [("ann", 1), ("ben", 2), ("ann", [2])])
                count(f"an invitation found by a comparison, {dialer} dials", trace)

    def test_a_reconnect_with_nothing_new_is_two_hellos_and_two_summaries(self):
        self.world.meet("ann", "ben")
        trace = self.world.meet("ann", "ben")
        self.assertEqual(numbers(trace), [("ann", HELLO), ("ben", HELLO), ("ben", SUMMARY), ("ann", SUMMARY)])
        self.assertEqual(trace[-1].items[1], messages.EQUAL)

    def test_an_interest_told_anew_on_a_live_session_is_a_change(self):
        self.world.meet("ann", "ben")
        self.world.write("ann", self.name, "m")
        room = self.world.ben.partitions.pop(self.name)
        _, ben = self.world.connect("ann", "ben")
        start = len(self.world.trace)
        self.world.ben.partitions[self.name] = room
        ben.send(messages.INTEREST, self.world.ben.wanted, [])
        self.world.run()
        # Before she answers his next comparison.
        said = [number for by, number in numbers(self.world.trace[start:]) if by == "ann"]
        self.assertEqual(said[0], messages.VECTORS)

    def test_the_digest_of_a_room_is_as_said(self):
        ben = self.world.connect("ann", "ben")[1]
        partition = self.world.ben.partitions[self.name]
        ids = sorted(item.id for item in self.world.ben.room(self.name))
        author = hashing.sha256(b"seamesh/1 author", *ids)
        self.assertEqual(ben.digest(partition), hashing.sha256(b"seamesh/1 room\0\0", bytes(32), author))
        self.world.write("ben", self.name, "m")
        vector = messages.vector_digest(partition.vector)
        self.assertEqual(ben.digest(partition), hashing.sha256(b"seamesh/1 room\0\0", vector, author))

    def test_what_either_side_has_more_goes_over_and_no_more(self):
        self.world.invite("ann", "cat", self.name)
        self.world.meet("ann", "ben")
        self.world.invite("ann", "x", self.name)
        self.world.invite("ben", "y", self.name)
        for dialer, listener in [("ann", "ben"), ("ben", "ann")]:
            with self.subTest(dialer):
                trace = self.world.meet(dialer, listener)
                self.assert_alike(self.name, "ann", "ben")
                sent = [said.items[1] for said in trace if said.number == messages.STATEMENTS]
                self.assertEqual([len(item) for item in sent], [1, 1])
                count(f"one statement on either side, {dialer} dials", trace)
                self.world.invite("ann", "x" + dialer, self.name)
                self.world.invite("ben", "y" + dialer, self.name)

    def test_who_has_something_of_an_issuer_who_was_not_told_of_tells_tips_of_him_alone(self):
        self.world.meet("ann", "ben")
        self.world.invite("ben", "y", self.name)
        # ben dials, so that ann asks, ben is asked and tells first; the other way ann tells, and he in turn.
        trace = self.world.meet("ann", "ben")
        in_turn = [said for said in trace if said.number == messages.STATEMENT_SET and said.items[1] == 1]
        first = in_turn[0].items
        self.assertEqual((in_turn[0].by, first[2], [item[0] for item in first[3]]), (
            "ann", b"\xff" * 8, [self.world.ann.device]))
        turned = in_turn[1].items
        self.assertEqual((in_turn[1].by, turned[2], [item[0] for item in turned[3]]), (
            "ben", bytes(8), [self.world.ben.device]))
        self.assertEqual(of_rooms(trace), [("ann", 1), ("ben", 1), ("ann", 2), ("ben", [1])])
        self.assert_alike(self.name, "ann", "ben")

    def test_of_buckets_that_are_not_listed_nothing_is_told_in_turn(self):
        self.world.meet("ann", "ben")
        end, ben = self.world.connect("ann", "ben")
        mine = 1 << exchange.bucket(self.world.ann.device)
        for listed in (mine, (1 << 64) - 1 - mine):
            end.ask()
            self.world.run()
            start = len(self.world.trace)
            end.send(messages.STATEMENT_SET, self.name, 1, listed.to_bytes(8, "big"), [])
            self.world.run()
            self.assertEqual(of_rooms(self.world.trace[start:])[1:], [("ben", 1)] if listed == mine else [])

    def test_two_branches_of_one_issuer_are_brought_together_by_two_comparisons(self):
        self.world.meet("ann", "ben")
        spare = self.world.store("ann")
        spare.want(self.name)
        spare.keep_all([item.encoded for item in self.world.ann.room(self.name)], self.name)
        self.world.invite("ann", "x", self.name)
        # What ben got from the other copy of her device.
        member = spare.membership().id
        self.world.ben.keep_all([spare.sign(statements.invitation(member, "y"), self.name).encoded], self.name)
        self.world.meet("ann", "ben")
        self.assertNotEqual(self.world.held("ann", self.name), self.world.held("ben", self.name))
        self.world.meet("ann", "ben")
        self.assert_alike(self.name, "ann", "ben")

    def test_members_come_to_one_set_from_any_two(self):
        drawn = random.Random(11)
        for round in range(25):
            with self.subTest(round):
                self.setUp()
                world = self.world
                world.invite("ann", "cat", self.name)
                world.meet("ann", "ben")
                world.meet("ann", "cat")
                for place in range(drawn.randrange(1, 12)):
                    by = drawn.choice(["ann", "ben", "cat"])
                    match drawn.randrange(3):
                        case 0:
                            world.invite(by, f"x{place}", self.name)
                        case 1:
                            world.write(by, self.name, f"m{place}")
                        case 2:
                            world.meet(*drawn.sample(["ann", "ben", "cat"], 2))
                for _ in range(2):
                    for pair in [("ann", "ben"), ("cat", "ben"), ("ann", "cat")]:
                        world.meet(*pair)
                self.assert_alike(self.name, "ann", "ben", "cat")
                vectors = [world.stores[user].partitions[self.name].vector for user in ("ann", "ben", "cat")]
                self.assertEqual(vectors, [vectors[0]] * 3)

    # Live

    def test_what_is_said_on_a_session_goes_over_at_once_and_through_the_middle(self):
        self.world.invite("ann", "cat", self.name)
        self.world.connect("ann", "ben")
        self.world.connect("cat", "ben")
        self.assert_alike(self.name, "ann", "ben", "cat")
        start = len(self.world.trace)
        self.world.invite("cat", "x", self.name)
        self.world.run()
        self.assert_alike(self.name, "ann", "ben", "cat")
        self.assertEqual(of_rooms(self.world.trace[start:]), [("cat", [1]), ("ben", [1])])
        self.assertEqual(len(self.world.trace), start + 2)
        count("a new statement through the middle", self.world.trace[start:])

    def test_who_is_let_in_on_a_session_gets_the_room_and_what_was_written_there(self):
        self.world.connect("ann", "cat")
        self.world.write("ann", self.name, "before")
        self.world.run()
        self.assertEqual(self.world.held("cat", self.name), set())
        start = len(self.world.trace)
        self.world.invite("ann", "cat", self.name)
        self.world.run()
        self.assert_alike(self.name, "ann", "cat")
        shown = self.world.cat.partitions[self.name].documents()
        self.assertEqual([(item.id, item.body) for item in shown], [("before", {"by": "ann"})])
        count("an invitation on a session, and a run", self.world.trace[start:])

    # Who hears what

    def test_who_is_not_invited_hears_nothing(self):
        for dialer, listener in [("ann", "cat"), ("cat", "ann")]:
            with self.subTest(dialer):
                trace = self.world.meet(dialer, listener)
                self.assertEqual(of_rooms(trace), [])
        pair = self.world.connect("ann", "cat")
        self.world.invite("ann", "x", self.name)
        self.world.remove("ann", "x", self.name)
        self.world.run()
        self.assertEqual(self.world.held("cat", self.name), set())
        self.world.part(*pair)

    def test_who_does_not_want_the_room_hears_nothing(self):
        del self.world.ben.partitions[self.name]
        pair = self.world.connect("ann", "ben")
        self.world.invite("ann", "x", self.name)
        self.world.run()
        self.assertEqual((of_rooms(self.world.trace), self.world.held("ben", self.name)), ([], set()))

    def test_who_is_removed_hears_the_line_of_it_and_no_more(self):
        for is_live in (True, False):
            for dialer, listener in [("ann", "ben"), ("ben", "ann")]:
                with self.subTest(f"{dialer} dials, live: {is_live}"):
                    self.setUp()
                    self.world.invite("ann", "cat", self.name)
                    for user in ("ben", "cat"):
                        self.world.meet("ann", user)
                    pair = self.world.connect(dialer, listener) if is_live else []
                    removal = self.world.remove("ann", "ben", self.name)
                    after = self.world.invite("ann", "x", self.name)
                    self.world.invite("cat", "y", self.name)
                    self.world.meet("cat", "ann")
                    start = len(self.world.trace)
                    self.world.run()
                    if not is_live:
                        trace = self.world.meet(dialer, listener)
                        # He tells tips, believing to be in. She tells him none.
                        self.assertEqual(of_rooms(trace), [("ben", 1), ("ann", [1])])
                        count(f"a removal that he did not hear of, {dialer} dials", trace)
                    self.assertIn(removal.id, self.world.held("ben", self.name))
                    self.assertNotIn(after.id, self.world.held("ben", self.name))
                    self.assertEqual(self.lacking("ben"), self.invitations_of("x", "y"))
                    self.assertFalse(self.world.ben.may_carry(self.world.ben.device, self.name))
                    # Then both are level, as two that have nothing in common.
                    self.world.part(*pair)
                    trace = self.world.meet(dialer, listener)
                    self.assertEqual([said.number for said in trace], [HELLO, HELLO, SUMMARY, SUMMARY])

    def test_what_a_removed_user_had_said_before_comes_to_the_others(self):
        self.world.meet("ann", "ben")
        said = self.world.invite("ben", "y", self.name)
        self.world.remove("ann", "ben", self.name)
        self.world.meet("ann", "ben")
        self.assertIn(said.id, self.world.held("ann", self.name))

    def test_who_is_removed_and_was_never_in_the_room_hears_nothing(self):
        pair = self.world.connect("ann", "cat")
        self.world.remove("ann", "cat", self.name)
        self.world.run()
        self.assertEqual(self.world.held("cat", self.name), set())
        self.world.part(*pair)

    def test_who_leaves_tells_it(self):
        for is_live in (True, False):
            for dialer, listener in [("ann", "ben"), ("ben", "ann")]:
                with self.subTest(f"{dialer} dials, live: {is_live}"):
                    self.setUp()
                    self.world.meet("ann", "ben")
                    pair = self.world.connect(dialer, listener) if is_live else []
                    left = self.world.leave("ben", self.name)
                    start = len(self.world.trace)
                    self.world.run()
                    if not is_live:
                        trace = self.world.meet(dialer, listener)
                        # The dialer is asked first, and tells first, also of a room that he left.
                        first = [("ann", 1), ("ben", 1)] if dialer == "ann" else [("ben", 1)]
                        self.assertEqual(of_rooms(trace), [*first, ("ann", 2), ("ben", [1])])
                        count(f"a leave that she did not hear of, {dialer} dials", trace)
                    self.assertIn(left.id, self.world.held("ann", self.name))
                    self.assertFalse(self.world.ann.may_carry(self.world.ben.device, self.name))
                    # What she says then stays hers.
                    self.world.invite("ann", "x", self.name)
                    self.world.run()
                    self.assertEqual(self.lacking("ben"), self.invitations_of("x"))
                    self.world.part(*pair)
                    trace = self.world.meet(dialer, listener)
                    self.assertEqual([said.number for said in trace], [HELLO, HELLO, SUMMARY, SUMMARY])

    def test_who_left_comes_back_by_an_invitation_that_has_seen_it(self):
        self.world.meet("ann", "ben")
        left = self.world.leave("ben", self.name)
        self.world.meet("ann", "ben")
        self.world.invite("ann", "ben", self.name)
        self.world.meet("ann", "ben")
        self.assertFalse(self.world.ben.may_carry(self.world.ben.device, self.name))
        self.world.invite("ann", "ben", self.name, [left.id])
        self.world.meet("ann", "ben")
        self.assertTrue(self.world.ben.may_carry(self.world.ben.device, self.name))
        self.assert_alike(self.name, "ann", "ben")

    # Who carries without being in

    def test_a_relay_brings_a_room_to_who_is_in(self):
        relay = [0, self.world.relay.device]
        self.world.say(statements.grant(relay, statements.CARRY, "conversation=*"))
        self.world.tell_all()
        self.world.write("ann", self.name, "m")
        self.world.meet("relay", "ann")
        self.world.meet("ben", "relay")
        self.assert_alike(self.name, "ann", "relay", "ben")
        self.assertEqual(of_rooms(self.world.meet("cat", "relay")), [])
        shown = self.world.ben.partitions[self.name].documents()
        self.assertEqual([item.id for item in shown], ["m"])
        self.world.leave("ben", self.name)
        self.world.meet("ben", "relay")
        self.world.meet("relay", "ann")
        self.assertFalse(self.world.ann.may_carry(self.world.ben.device, self.name))

    def test_a_grant_that_lets_a_peer_in_tells_it_of_the_room_at_once(self):
        self.world.connect("ann", "relay")
        self.world.say(statements.grant([0, self.world.relay.device], statements.CARRY, "conversation=*"))
        self.world.tell_all()
        self.world.run()
        self.assert_alike(self.name, "ann", "relay")

    # Bad forms

    def live(self, user: str = "ben") -> Session:
        """ann's end of a session with a user, after which nothing is said any more."""
        return self.world.connect("ann", user)[0]

    def hear(self, end: Session, number: int, *items) -> list[tuple]:
        """What the other side answers to this."""
        start = len(self.world.trace)
        end.send(number, *items)
        self.world.run()
        return numbers(self.world.trace[start:])[1:]

    def test_what_is_of_no_room_or_of_an_unwanted_one_is_ignored(self):
        end, unwanted = self.live(), "conversation=" + 64 * "0"
        for scope in ("conversation=1", "agency=Gabon", "x" * 255, self.name.upper(), self.name + "0", unwanted):
            for number, items in [
                (messages.STATEMENT_SET, [0, bytes(512)]),
                (messages.STATEMENT_SET, [1, b"\xff" * 8, [[self.world.ann.device, [[9, bytes(16)]]]]]),
                (messages.STATEMENT_SET, [2, []]), (messages.STATEMENTS, [[b"no statement"]]),
                (messages.STATEMENTS_COMPLETE, [])]:
                self.assertEqual(self.hear(end, number, scope, *items), [], (scope, number))

    def test_steps_that_a_room_does_not_have_are_ignored(self):
        end = self.live()
        for number, items in [
            (messages.STATEMENT_SET, [0, bytes(512)]), (messages.STATEMENTS_COMPLETE, [])]:
            self.assertEqual(self.hear(end, number, self.name, *items), [])

    def test_what_is_no_message_breaks_the_protocol_of_whatever_scope(self):
        ann = self.world.ann.device
        for number, items in self.no_messages(ann):
            for scope in (self.name, "conversation=1"):
                with self.subTest(f"{number} {items} of {scope}"), self.assertRaises(session.Goodbye) as turned:
                    self.setUp()
                    self.hear(self.live(), number, scope, *items)
                self.assertEqual(turned.exception.reason, messages.PROTOCOL_ERROR)

    @staticmethod
    def no_messages(device: bytes) -> list[tuple]:
        step, all, tip = messages.STATEMENT_SET, b"\xff" * 8, [1, bytes(16)]
        other = bytes([device[0] ^ 1]) + device[1:]
        descending = sorted([device, other], reverse=True)
        return [
            (step, [3]), (step, [0]), (step, [0, b"short"]), (step, [1]), (step, [2]), (step, [2, [[device]]]),
            (step, [1, all[1:], [[device, [tip]]]]), (step, [1, all, [[item, [tip]] for item in descending]]),
            (step, [2, [[item, [tip]] for item in descending]]), (step, [1, all, [[device, [tip, tip]]]]),
            (messages.STATEMENTS, [b"x"]), (messages.STATEMENTS, []), (messages.STATEMENTS_COMPLETE, [1])]

    def test_step_2_that_answers_nothing_is_ignored(self):
        end = self.live()
        nothing_known = [[self.world.ann.device, []]]
        self.assertEqual(self.hear(end, messages.STATEMENT_SET, self.name, 2, nothing_known), [])

    def test_what_is_told_of_a_room_again_in_one_comparison_is_ignored(self):
        end = self.live()
        end.ask()
        self.world.run()
        tips = [b"\xff" * 8, [[self.world.ann.device, [[9, bytes(16)]]]]]
        self.assertEqual(self.hear(end, messages.STATEMENT_SET, self.name, 1, *tips), [("ben", messages.STATEMENT_SET)])
        self.assertEqual(self.hear(end, messages.STATEMENT_SET, self.name, 1, *tips), [])
        end.ask()
        self.world.run()
        self.assertEqual(self.hear(end, messages.STATEMENT_SET, self.name, 1, *tips), [("ben", messages.STATEMENT_SET)])

    def test_statements_of_another_scope_than_their_message_break_the_protocol(self):
        end, fleets = self.live(), self.world.said[0].encoded
        with self.assertRaises(session.Goodbye) as turned:
            self.hear(end, messages.STATEMENTS, self.name, [fleets])
        self.assertEqual(turned.exception.reason, messages.PROTOCOL_ERROR)

    def test_what_nothing_here_leads_to_is_passed_over(self):
        end = self.live()
        before = self.world.held("ben", self.name)
        self.world.invite("ann", "x", self.name)
        later = self.world.invite("ann", "y", self.name)
        stranger = statements.make(FLEET, key(9), None, statements.invitation(bytes(32), "ben"), self.name)
        end.rooms.known |= self.world.held("ann", self.name)
        self.assertEqual(self.hear(end, messages.STATEMENTS, self.name, [later.encoded, stranger.encoded]), [])
        self.assertEqual(self.world.held("ben", self.name), before)

    def test_of_questions_that_cross_the_dialers_is_answered(self):
        one, other = self.world.connect("ann", "ben")
        start = len(self.world.trace)
        one.ask(), other.ask()
        self.world.run()
        self.assertEqual(
            [(said.by, said.items[1]) for said in self.world.trace[start:]],
            [("ben", messages.DIGEST), ("ann", messages.DIGEST), ("ben", messages.EQUAL)])
        self.assertTrue(one.is_compared and other.is_compared)

    # Bounds

    def test_what_a_device_says_beyond_its_limit_is_passed_over_and_not_asked_for(self):
        with mock.patch.object(session, "STATEMENTS_OF_DEVICE", 3):
            self.world.meet("ann", "ben")
            self.world.stores["ann"].spent = set()
            with mock.patch.object(session, "STATEMENTS_OF_DEVICE", 10):
                for place in range(3):
                    self.world.invite("ann", f"x{place}", self.name)
            self.world.ann.spent = set()
            self.world.meet("ann", "ben")
            self.assertEqual(len(self.world.held("ben", self.name)), 3)
            self.assertTrue(self.world.ben.is_spent(self.world.ann.device))
            # ben begins nothing about this room, and asks for nothing more of hers.
            self.world.ann.spent = set()
            trace = self.world.meet("ann", "ben")
            self.assertEqual(of_rooms(trace), [("ann", 1)])

    def test_tips_of_a_bounded_number_of_rooms_are_told_for_one_comparison(self):
        with mock.patch.object(rooms, "TOLD_LIMIT", 2):
            names = [self.name, *(self.world.room() for _ in range(3))]
            for name in names[1:]:
                self.world.invite("ann", "ben", name)
            self.assertEqual(len(set(names)), 4)
            # Else a comparison would be due at once by each that is let in.
            with mock.patch.object(rooms.Rooms, "is_due", False):
                one = self.world.connect("ann", "ben")[0]
            told = [said for said in self.world.trace if said.number == messages.STATEMENT_SET and said.by == "ann"]
            self.assertEqual(len(told), 2)
            one.ask()
            self.world.run()
            for name in names:
                self.assert_alike(name, "ann", "ben")


if __name__ == "__main__":
    unittest.main()
