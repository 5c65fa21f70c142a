"""Who gets what: agencies that are walled off from one another, and closed fleets (scenarios.md P02, P03)."""

import os
import time

from fleets import add_node, await_meeting, enrol
from node import Node
from responder import Responder
from rights import (
    COLLECTION, ROOM, add_member, await_level, expect_shows_nothing, found_fleet, kept, level, shown, sign, write,
)  # fmt: skip
from runner import Bench, case
from waiting import expect, wait_for

_AGENCIES = {"g": "Gabon", "w": "WildAid", "n": "Niue"}


@case("P02: three agencies and a relay: nobody holds or reads a byte of another agency, and the relay carries all")
def agency_wall(bench: Bench):
    founder, relay, nodes = _make_wall(bench)
    await_meeting([relay, *nodes.values()])
    for node in nodes.values():
        node.put_many(_partition(node), f"{node.name}-{_mark(node)}", 10)
    for node in nodes.values():
        partition = _partition(node)
        wait_for(30, f"the relay carries {partition}", lambda: relay.changes(partition) == 10, 0.2)
        expect(node.changes(partition) == 10, f"{node.name} lacks its own")
    for name, node in nodes.items():
        _expect_walled(node, [other for other in nodes.values() if other is not node])
        for other in nodes.values():
            if other is not node:
                expect(write(node, "intruder", _partition(other)) == 403, f"{name} writes for another agency")
    # That what is looked for would be found.
    for node in nodes.values():
        expect(_mark(node) in _content(node), f"{node.name}'s own store does not show its own text")
        expect(_mark(node) in _content(relay), f"the relay's store does not show {node.name}'s text")


@case("P02: an agency's device behind the relay gets all of its own agency through it, and nothing else")
def behind_relay(bench: Bench):
    network = bench.network
    network.add_bridge("lan1")
    founder, relay, nodes = _make_wall(bench, second_bridge=True)
    far = add_member(network, "far", founder, "*", agency="Gabon", bridge="lan1")
    near = nodes["g"]
    for node in nodes.values():
        wait_for(30, f"{node.name} knows all devices", lambda: len(node.ask("/v1/devices")["devices"]) == 6, 0.2)
    founder.stop()
    wait_for(30, "the far one meets the relay", lambda: [peer["label"] for peer in far.peers()] == ["r"], 0.2)
    for node in nodes.values():
        node.put_many(_partition(node), f"{node.name}-{_mark(node)}", 4)
    wait_for(30, "what Gabon wrote came through the relay", lambda: far.changes("agency=Gabon") == 4, 0.2)
    far.put_many("agency=Gabon", f"far-{_mark(far)}", 4)
    wait_for(30, "what the far one wrote came back", lambda: near.changes("agency=Gabon") == 8, 0.2)
    expect([peer["label"] for peer in far.peers()] == ["r"], "the far one is connected to others than the relay")
    _expect_walled(far, [node for name, node in nodes.items() if name != "g"])
    for name in "wn":
        _expect_walled(nodes[name], [near, far])


def _make_wall(bench: Bench, second_bridge: bool = False) -> tuple[Node, Node, dict[str, Node]]:
    """A closed fleet, a relay that may carry what agencies write and read nothing, and a device of each agency."""
    network = bench.network
    founder = found_fleet(network, "a", "--closed")
    sign(founder, "grant", "role:relay", "carry", "agency=*")
    host = network.host("r")
    if second_bridge:
        host.plug("lan1")
        founder.host.plug("lan1")
    Responder(host)
    relay = enrol(Node(host), founder, agency="None", role="relay")
    relay.start("--relay", "--listen", "7000")
    # Each wants all that it can get.
    nodes = {name: add_member(network, name, founder, "*", "agency=*", *(f"agency={other}" for other in _AGENCIES.values()),
                              agency=agency) for name, agency in _AGENCIES.items()}  # fmt: skip
    if second_bridge:
        founder.stop()
        founder.start()
    return founder, relay, nodes


def _partition(node: Node) -> str:
    return f"agency={_AGENCIES[node.name]}"


def _mark(node: Node) -> str:
    """Stands in every id that the node writes, and nowhere else."""
    return f"markof{node.name}" * 3


def _expect_walled(node: Node, others: list[Node]):
    """Neither its files nor its interface show anything that the others wrote."""
    own = node.partitions()
    content = _content(node)
    for other in others:
        agency = _AGENCIES.get(other.name, "Gabon")
        expect(_mark(other) not in content, f"{node.name}'s files show what {other.name} wrote")
        row = own.get(f"agency={agency}", {"changes": 0, "documents": 0, "heldChanges": 0, "vector": []})
        expect(not (row["changes"] or row["documents"] or row["heldChanges"] or row["vector"]),
               f"{node.name} tells of another agency: {row}")  # fmt: skip
        expect(kept(node, f"agency={agency}") == set(), f"{node.name} holds documents of {agency}")
        expect_shows_nothing(node, f"agency={agency}")


def _content(node: Node) -> str:
    """All bytes of all files of a node, its log among them."""
    text = ""
    for directory, _, files in os.walk(node.directory):
        for name in files:
            path = os.path.join(directory, name)
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    text += file.read().decode("latin-1")
    with open(node.log, encoding="latin-1") as file:
        return text + file.read()


@case("P02: a node that wants what it may not hold is told so, and both say in the log what they keep from the other")
def wall_is_told(bench: Bench):
    founder = found_fleet(bench.network, "a", "--closed")
    nodes = {name: add_member(bench.network, name, founder, agency=_AGENCIES[name]) for name in "gw"}
    await_meeting([founder, *nodes.values()])
    for node in nodes.values():
        node.put_many(_partition(node), node.name, 3)
    said = nodes["w"].verb("subscribe", "agency=Gabon")
    expect("may not hold agency=Gabon" in said.stderr and "wanted" in said.stdout, f"subscribe says {said.stdout}{said.stderr}")
    expect("wants a partition that this device may not hold partition=agency=Gabon" in _log(nodes["w"]), "its log is silent")
    expect(nodes["g"].verb("subscribe", "agency=Gabon").stderr == "", "who may hold it is warned")
    # They meet again, each with something of its own.
    for node in nodes.values():
        node.stop()
        node.start()
    for node, other in (nodes["g"], nodes["w"]), (nodes["w"], nodes["g"]):
        device = other.ready_line["device"][:8]
        line = f"keeps from a peer what it may not have device={device} partitions=1 first={_partition(node)}"
        wait_for(30, f"{node.name} says that it keeps something from {other.name}", lambda: line in _log(node), 0.2)


def _log(node: Node) -> str:
    with open(node.log, errors="replace") as file:
        return file.read()


@case("P03: nothing is written without an agency, and a partition without a value has no rule")
def no_agency(bench: Bench):
    founder = found_fleet(bench.network, "a", "--closed")
    node = add_node(bench.network, "b", founder, agency="")
    node.start()
    for partition in ("agency=", "agency", "agency=Gabon"):
        expect(write(node, "one", partition) == 403, f"a device without an agency writes to {partition}")
    expect(write(founder, "one", "agency=") == 403, "an admin writes where nobody's agency stands")
    expect(node.verb("put", "agency=", COLLECTION, "one", "/dev/null", check=False).returncode != 0, "put says nothing")
    expect(kept(node, "agency=") == set(), "something was written")
    expect_shows_nothing(node, "agency=")
    expect(write(node, "own", f"user={node.name}@lab.example") in (200, 201), "not even its own user's partition")


@case("rights: in a closed fleet nobody but admins writes where no rule allows it, until it is granted")
def closed_fleet(bench: Bench):
    network = bench.network
    a = found_fleet(network, "a", "--closed")
    b = add_member(network, "b", a, ROOM)
    c = add_member(network, "c", a, ROOM)
    nodes = [a, b, c]
    await_meeting(nodes)
    expect(write(a, "of-admin") in (200, 201), "an admin may not write in a closed fleet")
    for node in (b, c):
        expect(write(node, "early") == 403, f"{node.name} writes in a closed fleet")
        expect(level(node, node.name) == "none", f"{node.name} has {level(node, node.name)}")
        expect(kept(node) == set(), f"{node.name} was told what it may not read")
        expect_shows_nothing(node)
    sign(a, "grant", "device:b", "write", "room=*")
    await_level(nodes, "b", "write")
    expect(write(b, "granted") in (200, 201), "b may not write what was granted to it")
    wait_for(30, "a shows what b wrote", lambda: "granted" in shown(a), 0.2)
    expect(write(c, "still") == 403 and kept(c) == set(), "c got what was granted to b alone")
    expect_shows_nothing(c)
    expect(write(b, "elsewhere", "boat=1") == 403, "b writes beyond the pattern")


@case("rights: who is let in while connected gets what is there, without anything being started anew")
def granted_while_connected(bench: Bench):
    seconds = _grant_while_connected(bench, ["room=1"])
    bench.note(f"a member in {seconds[0]:.0f} s, a relay in {seconds[1]:.0f} s")


@case("rights: who is let in while connected gets what is there within seconds, not at the next look at everything")
def granted_at_once(bench: Bench):
    seconds = _grant_while_connected(bench, ["room=1", "room=2", "room=3"])
    expect(max(seconds) < 5, f"it came after {[round(each) for each in seconds]} s")


def _grant_while_connected(bench: Bench, partitions: list[str]) -> list[float]:
    network = bench.network
    network.add_bridge("lan1")
    a = found_fleet(network, "a", "--closed")
    a.host.plug("lan1")
    a.stop()
    a.start()
    for partition in partitions:
        expect(write(a, "early", partition) in (200, 201), "the founder may not write")
    # On networks of their own, so that neither passes anything on to the other.
    b = add_member(network, "b", a, "room=*")
    relay = add_member(network, "r", a, run=("--relay",), role="relay", bridge="lan1")
    wait_for(60, "both are connected to a", lambda: len(a.peers()) == 2, 0.2)
    seconds = []
    for partition in partitions:
        for node, who, right in ((b, "device:b", "read"), (relay, "role:relay", "carry")):
            sign(a, "grant", who, right, partition)
            began = time.monotonic()
            wait_for(60, f"{node.name} has {partition}", lambda: node.changes(partition) == 1, 0.2)
            seconds.append(time.monotonic() - began)
    return seconds
