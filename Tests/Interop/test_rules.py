"""Docs/RULES.md by the conformance vectors: rights, acceptance and delivery, documents and inbox, local writes."""

import base64
import datetime
import json
import math
import pathlib
import random
import unittest
import uuid

from seamesh_peer import acceptance, local_writes, merge, payloads, rights, values
from seamesh_peer.payloads import Element, Operation, Write

VECTORS = pathlib.Path(__file__).resolve().parents[1] / "ReplicationTests" / "Vectors"
LEVELS = ["none", "carry", "read", "write", "manage"]
OPERATIONS = ["set", "remove", "increment", "list-insert", "list-remove", "set-add", "set-remove"]
KINDS = ["create", "edit", "delete"]
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def load(pattern: str) -> list[dict]:
    found = []
    for path in sorted(VECTORS.glob(pattern)):
        content = json.loads(path.read_text())
        if isinstance(content, dict):
            assert content["format"] == 1 and content["kind"] == path.name.split("-")[0], path
            content = content["cases"]
        found += [case | {"file": path.name} for case in content]
    return found


def orders(items: list, seed: str) -> list[list]:
    """As given, turned round, and two at random."""
    drawn = random.Random(seed)
    return [items, items[::-1], drawn.sample(items, len(items)), drawn.sample(items, len(items))]


class Cases(unittest.TestCase):
    def each(self, check):
        for case in self.CASES:
            with self.subTest(case["name"], file=case["file"]):
                check(case)


# Statements and runs


def read_statement(fields: dict) -> rights.Statement:
    """The device before the first full stop of a replica's name is the one whose it is."""
    replica = fields["body"].get("replica", "")
    return rights.Statement(**fields, is_certified=replica.split(".")[0] == fields["issuer"])


def judge(case: dict, statements: list) -> rights.Rights:
    return rights.Rights(statements, "root", case.get("limit", rights.ALLOWANCE))


def read_run(fields: dict) -> acceptance.Run:
    changes = [
        acceptance.Change(
            item["hash"], [(item["document"], item["fields"])], item["critical"],
            item["origin"] and tuple(item["origin"]))
        for item in fields["changes"]]
    return acceptance.Run(
        fields["replica"], fields["first"], fields["prev"], fields["context"], fields["signer"], changes)


class RightsVectors(Cases):
    CASES = load("rights-*.json")

    def test_there_are_as_many_cases_as_there_were(self):
        self.assertEqual(len(self.CASES), 200)

    def test_levels_and_the_set_in_every_order(self):
        def check(case: dict):
            seen = [read_statement(item) for item in case["statements"]]
            for order in [range(len(seen)), *case["orders"]]:
                found = judge(case, [seen[place] for place in order])
                levels = [
                    [label, partition, LEVELS[found.level(case["members"][label], partition)]]
                    for label, partition, _ in case["levels"]]
                self.assertEqual(levels, case["levels"])
                self.assertEqual(sorted(item.id for item in seen if item.id not in found.set), case["dropped"])

        self.each(check)


class AcceptVectors(Cases):
    CASES = load("accept-*.json")

    def test_there_are_as_many_cases_as_there_were(self):
        self.assertEqual(len(self.CASES), 234)

    def judgements(self, case: dict):
        """Runs, headers and statements in several orders."""
        learned = [(read_run(item), True) for item in case["runs"]]
        learned += [(read_run(item), False) for item in case["headers"]]
        seen = [read_statement(item) for item in case["statements"]]
        for runs, statements in zip(orders(learned, case["name"]), orders(seen, case["name"])):
            # The chain of a replica that only contexts name has no hash(0) here, and needs none.
            held = acceptance.Held(case["genesis"].get)
            for run, has_content in runs:
                held.learn(run, has_content)
            yield acceptance.Judgement(judge(case, statements), case["partition"], held)

    def test_what_counts_in_every_order(self):
        def check(case: dict):
            for found in self.judgements(case):
                self.assertEqual(self.told(found), case["expect"])

        self.each(check)

    @staticmethod
    def told(found: acceptance.Judgement) -> dict:
        def number(value):
            return None if value == math.inf else value

        told = {which: found.vector(which) for which in ("received", "accepted", "clipped")}
        told |= {"held": found.held(), "forks": found.forks()}
        bounds = [
            [replica, number(chain.bound.bound[0]), number(chain.floor)] for replica, chain in sorted(found.chains.items())]
        lists = {name: [list(item) for item in items] for name, items in told.items()}
        return lists | {"effective": found.effective(), "bounds": bounds}

    def test_what_becomes_of_runs_that_come(self):
        def check(case: dict):
            found = next(self.judgements(case))
            for place, candidate in enumerate(case["deliver"]):
                verdict, detail = found.verdict(read_run(candidate["run"]))
                # Of the others the detail is for people.
                is_compared = verdict in ("refuse", "error")
                self.assertEqual([verdict, detail if is_compared else candidate["verdict"][1]], candidate["verdict"], place)

        self.each(check)
        self.assertEqual(sum(len(case["deliver"]) for case in self.CASES), 627)


# Documents


def read_value(item):
    """Relaxed MongoDB Extended JSON v2."""
    if isinstance(item, list):
        return [read_value(part) for part in item]
    if not isinstance(item, dict):
        return item
    match list(item):
        case ["$date"] if isinstance(item["$date"], dict):
            return values.Date(int(item["$date"]["$numberLong"]))
        case ["$date"]:
            time = datetime.datetime.fromisoformat(item["$date"].replace("Z", "+00:00"))
            return values.Date((time - EPOCH) // datetime.timedelta(milliseconds=1))
        case ["$oid"]:
            return values.ObjectID(bytes.fromhex(item["$oid"]))
        case ["$binary"]:
            content = base64.b64decode(item["$binary"]["base64"])
            return uuid.UUID(bytes=content) if item["$binary"]["subType"] == "04" else content
        case _:
            return {key: read_value(part) for key, part in item.items()}


def read_replica(name: str) -> bytes:
    return name.encode().ljust(16, b"\0")


def read_segment(segment):
    if isinstance(segment, str):
        return segment
    position, replica, sequence = segment["e"]
    return Element(bytes.fromhex(position), (read_replica(replica), sequence))


def read_operation(fields: dict) -> Operation:
    return Operation(
        OPERATIONS.index(fields["op"]), [read_segment(part) for part in fields["path"]], read_value(fields.get("value")),
        bytes.fromhex(fields.get("position", "")))


def read_change(fields: dict) -> merge.Change:
    writes = [
        Write(
            item["collection"], read_value(item["id"]), KINDS.index(item["kind"]), item["generation"],
            [read_operation(operation) for operation in item["operations"]])
        for item in fields["documents"]]
    context = {read_replica(name): number for name, number in fields["context"].items()}
    return merge.Change((read_replica(fields["replica"]), fields["sequence"]), fields["hlc"], context, writes)


class MergeVectors(Cases):
    CASES = load("merge-*.json")

    def test_there_are_as_many_cases_as_there_were(self):
        self.assertEqual(len(self.CASES), 452)

    def test_documents_and_inbox_in_every_order(self):
        def check(case: dict):
            accepted = {read_replica(name): number for name, number in case["accepted"].items()}
            changes = [read_change(item) for item in case["changes"]]
            changes = [item for item in changes if item.dot[1] <= accepted.get(item.dot[0], 0)]
            groups = [[(read_replica(name), number) for name, number in group] for group in case.get("groups", [])]
            for order in orders(changes, case["name"]):
                found = merge.documents(order, groups)
                self.assertEqual(self.told_documents(found), self.expected_documents(case))
                self.assertEqual(self.told_inbox(found), self.expected_inbox(case))

        self.each(check)

    # Values are compared by their canonical bytes: to Python 1, 1.0 and True are equal.

    @staticmethod
    def told_documents(found: list[merge.Document]) -> list:
        return [
            (item.collection, values.canonical(item.id), item.generation, values.canonical(item.body))
            for item in found if item.body is not None]

    @staticmethod
    def expected_documents(case: dict) -> list:
        return [
            (item["collection"], values.canonical(read_value(item["id"])), item["generation"],
             values.canonical(read_value(item["body"])))
            for item in case["documents"]]

    @staticmethod
    def told_inbox(found: list[merge.Document]) -> list:
        return [
            (document.collection, values.canonical(document.id), item.entry.generation, list(item.path),
             "set-add" if item.entry.kind == "add" else item.entry.kind,
             None if item.entry.kind == "remove" else values.canonical(item.value),
             item.entry.change.dot, item.entry.change.hlc)
            for document in found for item in merge.inbox(document)]

    @staticmethod
    def expected_inbox(case: dict) -> list:
        return [
            (item["collection"], values.canonical(read_value(item["id"])), item["generation"],
             [read_segment(part) for part in item["path"]], item["kind"],
             values.canonical(read_value(item["value"])) if "value" in item else None,
             (read_replica(item["replica"]), item["sequence"]), item["hlc"])
            for item in case["inbox"]]


class DifferenceVectors(Cases):
    CASES = load("diff-cases.json")
    HINTS = local_writes.Hints([
        (item["path"], item["kind"], item.get("key")) for item in json.loads((VECTORS / "diff-hints.json").read_text())])

    def test_there_are_as_many_cases_as_there_were(self):
        self.assertEqual(len(self.CASES), 153)

    def test_operations_of_a_local_write(self):
        def check(case: dict):
            base, shown = self.base(case)
            self.assertEqual(values.canonical(shown.value), values.canonical(read_value(case["shown"])))
            new = read_value(case["new"])
            made = local_writes.difference(shown, shown, new, self.HINTS, case["erase"])
            expected = [
                (item["op"], item["path"], values.canonical(read_value(item["value"])) if "value" in item else None)
                for item in case["operations"]]
            self.assertEqual(self.told(made), expected)
            if made:
                # Whatever positions were drawn, what was to be written is shown: nothing is left to say.
                writes = [Write("c", "d", payloads.EDIT, 1, made)]
                change = merge.Change((read_replica("B"), 1), 2, {read_replica("A"): 1}, writes)
                after = merge.documents([base, change])[0].shown
                self.assertEqual(local_writes.difference(after, after, new, self.HINTS, case["erase"]), [])

        self.each(check)

    @staticmethod
    def base(case: dict) -> tuple[merge.Change, merge.Shown]:
        operations = [read_operation(item) for item in case["base"]]
        change = merge.Change((read_replica("A"), 1), 1, {}, [Write("c", "d", payloads.CREATE, 1, operations)])
        return change, merge.documents([change])[0].shown

    @staticmethod
    def told(operations: list[Operation]) -> list:
        """An element that is inserted here stands as `+n`, for its position is drawn."""
        drawn = [item.position for item in operations if item.kind == payloads.LIST_INSERT]

        def segment(part):
            if isinstance(part, str):
                return part
            if part.dot is None:
                return {"e": f"+{drawn.index(part.position)}"}
            return {"e": [part.position.hex(), part.dot[0].rstrip(b"\0").decode(), part.dot[1]]}

        without = (payloads.REMOVE, payloads.LIST_REMOVE)
        return [
            (OPERATIONS[item.kind], [segment(part) for part in item.path],
             None if item.kind in without else values.canonical(item.value))
            for item in operations]


class Positions(unittest.TestCase):
    """M13, which no vectors show."""

    def test_a_position_is_between_its_neighbours_whatever_follows_it(self):
        drawn = random.Random(13)
        for _ in range(2_000):
            length = drawn.randrange(1, 6)
            keys = sorted({bytes(drawn.choice([0, 1, 255]) for _ in range(length)) + drawn.randbytes(25) for _ in range(2)})
            left, right = keys[0], keys[-1]
            if left == right:
                continue
            for pair in [(left, right), (left, None), (None, right), (None, None)]:
                made = local_writes.place(*pair, draw=drawn.randrange)
                self.assertLess(pair[0] or b"", made)
                self.assertLess(made + b"\xff" * 25, pair[1] or b"\xff" * 100)

    def test_a_list_that_grows_at_its_end_keeps_short_positions(self):
        left = None
        for sequence in range(1, 2_000):
            position = local_writes.place(left, None)
            left = position + bytes(16) + sequence.to_bytes(8, "big") + b"\x80"
        self.assertLessEqual(len(position), 5)


if __name__ == "__main__":
    unittest.main()
