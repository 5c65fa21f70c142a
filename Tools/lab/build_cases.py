"""Nodes of two builds in one fleet (invariant I16): the later one uses all that it has and the earlier one has not."""

from urllib.parse import quote

from builds import (
    CODEC, CRITICAL, EARLIER, FOR_ANYBODY, FOR_READERS, INFORMATIVE, LATER, PRESENT, expect_no_breach, run_as, said,
    statements, uses,
)  # fmt: skip
from fleets import PARTITION, add_node, await_meeting
from node import Node
from rights import ROOM, await_level, await_shown, shown, sign
from runner import Bench, case
from stores import StoredLog, expect_one_history
from waiting import expect, wait_for

_WRITTEN = {"a": 16, "b": 3, "c": 16}


@case("builds: an earlier one between two of the present passes on whole what it cannot read, and shows it when it is upgraded")
def between_present(bench: Bench):
    _upgrade_between(bench, PRESENT)


@case("builds: an earlier one between two later ones passes on whole what it cannot read, and shows it when it is upgraded")
def between_later(bench: Bench):
    _upgrade_between(bench, LATER)


def _upgrade_between(bench: Bench, full: str):
    a, b, c = nodes = _fleet(bench, {"a": full, "b": EARLIER, "c": full})
    _grant(a, b, c)
    expect(len(_rules(a)) > 0 and _rules(b) == [], f"b knows rules: {_rules(b)}")
    expect(full == PRESENT or said(a, FOR_READERS, c) > 0, "a has said nothing that c alone reads")
    _part(c)
    wait_for(30, "a and c have b alone", lambda: len(a.peers()) == len(c.peers()) == 1 and len(b.peers()) == 2, 0.2)
    for node in nodes:
        node.put_many(ROOM, node.name, _WRITTEN[node.name])
    a.put_many(PARTITION, "ruled", 16)
    documents = {f"{name}-{number:05}" for name, count in _WRITTEN.items() for number in range(count)}
    await_shown([a, c], documents, seconds=60)
    _expect_behind(bench, b, documents)
    b.stop()
    if full == LATER:
        _expect_used(a, b, c)
    before = statements(b)
    run_as(b, full)
    b.start()
    _expect_equal(nodes)
    expect(full == PRESENT or said(a, FOR_READERS, b) > 0, "b is still told nothing that a later build reads")
    expect(PARTITION in b.digests(), "b does not hold what a rule gives it")
    expect_no_breach(nodes)
    for node in nodes:
        node.stop()
    expect(before == statements(b) == statements(a) == statements(c), "not all statements had come to b before its upgrade")
    logs = [StoredLog(node) for node in nodes]
    expect_one_history(logs)
    for log in logs:
        log.expect_unbroken()


@case("builds: an earlier one that is killed and upgraded while others write comes to the same as they")
def meanwhile(bench: Bench):
    a, b, c = nodes = _fleet(bench, {"a": LATER, "b": EARLIER, "c": LATER})
    _grant(a, b, c)
    builds = [EARLIER, EARLIER, LATER, LATER]
    for turn, build in enumerate(builds):
        for node in nodes:
            node.put_many(ROOM, f"{node.name}{turn}", bench.random.randrange(3, 12))
            node.put_many(ROOM, "shared", 3, size=20 + turn)
        b.kill()
        run_as(b, build)
        b.start()
    _expect_equal(nodes)
    expect_no_breach(nodes)
    bench.note(f"{a.changes(ROOM)} changes, b as {', '.join(builds)}")


def _fleet(bench: Bench, builds: dict[str, str]) -> list[Node]:
    """A closed fleet on one LAN, all connected, each running as this build; the first founded it. All but the first are on
    a second LAN, too."""
    bench.network.add_bridge("lan1")
    nodes: list[Node] = []
    for name, build in builds.items():
        node = add_node(bench.network, name, nodes[0] if nodes else None, init=() if nodes else ("--closed",))
        if len(nodes) > 0:
            node.host.plug("lan1")
        run_as(node, build)
        node.start("--listen", "7000")
        for pattern in ("room=*", "agency=*"):
            node.subscribe(pattern)
        nodes.append(node)
    await_meeting(nodes)
    return nodes


def _part(node: Node):
    """Starts it again where the first LAN has gone."""
    node.stop()
    node.host.link("down")
    node.start()


def _grant(a: Node, b: Node, c: Node):
    """To b what every build reads, to c in a shape that the earlier one does not know. That c may carry b has to read: it
    speaks with nobody about what he may not have."""
    sign(a, "grant", "device:b", "write", "room=*")
    sign(a, "grant", "device:c", "carry", "room=*")
    sign(a, "grant", "user:c@lab.example", "write", "room=*")
    await_level([a, c], "c", "write")
    await_level([a, b], "b", "write")


def _rules(node: Node) -> list[dict]:
    return node.ask("/v1/rules")["rules"]


def _expect_behind(bench: Bench, node: Node, documents: set[str]):
    """It holds all of the room, and counts a part; it has nothing that rules give."""
    wait_for(30, f"{node.name} holds {len(documents)} changes", lambda: node.changes(ROOM) == len(documents), 0.2)
    held = node.ask("/v1/status")["held"]
    expect(held and shown(node) < documents, f"{node.name} holds nothing back: {held}, {sorted(shown(node))}")
    expect(node.changes(PARTITION) == 0, f"{node.name} has what only a rule gives")
    bench.note(f"{node.name} shows {len(shown(node))} of {len(documents)}, held {held}")


def _expect_used(a: Node, b: Node, c: Node):
    """All that a later build has came to b, which has stopped, and nothing that it had not announced to read."""
    for what, mark in (("codec", CODEC), ("critical extension", CRITICAL), ("informative extension", INFORMATIVE)):
        expect(uses(b, mark), f"b was passed no change with a later build's {what}")
    for node in (a, c):
        expect(said(node, FOR_ANYBODY, b) > 0, f"{node.name} has said nothing to b that it might pass over")
        expect(said(node, FOR_READERS, b) == 0, f"{node.name} told b what it does not read")


def _expect_equal(nodes: list[Node]):
    """Digests, vectors, documents, and what everybody may do by which statements."""
    first, *others = nodes
    for node in others:
        wait_for(60, lambda: f"{node.name} is equal to {first.name}; it has {node.partitions()}, not {first.partitions()}",
                 lambda: node.digests() == first.digests(), 0.3)  # fmt: skip
    partitions = first.partitions()
    for node in others:
        rows = node.partitions()
        for name, row in partitions.items():
            for what in ("vector", "changes", "heldChanges", "documents"):
                expect(row[what] == rows[name][what], f"{what} of {name}: {node.name} {rows[name][what]}, not {row[what]}")
            exports = [each.verb("export", name).stdout for each in (first, node)]
            expect(exports[0] == exports[1] != "", f"{node.name} exports something else of {name}")
        expect(_rights(node) == _rights(first), f"{node.name} knows {_rights(node)}, not {_rights(first)}")


def _rights(node: Node) -> dict:
    """Grants and rules by their ids, and what each device may do in the room."""
    listed = node.ask("/v1/permissions")["rights"] + _rules(node)
    members = node.ask(f"/v1/permissions?partition={quote(ROOM, safe='')}")["members"]
    rights = {right["id"]: (right["words"], right["level"], right["inForce"]) for right in listed}
    return rights | {member["device"]: member["level"] for member in members}
