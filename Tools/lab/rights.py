"""What cases about rights ask for and look at."""

import json
import sqlite3
import time

from fleets import add_node, await_meeting
from joining import expect_refused
from network import Network
from node import Node, documents_path
from runner import Bench
from waiting import expect, wait_for

ROOM, OTHER = "room=1", "room=2"
COLLECTION = "Lab"


def sign(node: Node, *words: str) -> dict:
    """A verb about rights, confirmed: what was signed and what it did."""
    return json.loads(node.verb(*words, "--yes", "--json").stdout)


def preview(node: Node, *words: str) -> dict:
    return json.loads(node.verb(*words, "--dry-run", "--json").stdout)


def found_fleet(network: Network, name: str, *options: str) -> Node:
    """A founder's node, which runs."""
    node = add_node(network, name, None, init=options)
    node.start("--listen", "7000")
    return node


def add_member(network: Network, name: str, inviter: Node, *wanted: str, run: tuple[str, ...] = (), **how) -> Node:
    """A member that runs and wants these partitions."""
    node = add_node(network, name, inviter, **how)
    node.start("--listen", "7000", *run)
    for pattern in wanted:
        node.subscribe(pattern)
    return node


def fleet(bench: Bench, names: str, *options: str, wanted: dict[str, str] | None = None) -> list[Node]:
    """Nodes on one LAN, all connected; the first founded the fleet. Each wants the rooms, or what is said for it."""
    wanted = wanted or {}
    nodes = [found_fleet(bench.network, names[0], *options)]
    nodes[0].subscribe(wanted.get(names[0], "room=*"))
    nodes += [add_member(bench.network, name, nodes[0], wanted.get(name, "room=*")) for name in names[1:]]
    await_meeting(nodes)
    return nodes


def split(bench: Bench, *sides: list[Node]):
    bench.network.split(*([node.host for node in side] for side in sides))


def _find(node: Node, partition: str) -> tuple[int, dict]:
    target = documents_path(partition, COLLECTION).removesuffix("/documents") + "/find"
    client = node.client()
    status, answer = client.request("POST", target, {"filter": {}, "limit": 1000})
    client.close()
    return status, answer


def shown(node: Node, partition: str = ROOM) -> set[str]:
    """Ids of the documents that a node shows."""
    status, answer = _find(node, partition)
    expect(status == 200, f"find on {node.name} answered {status}: {answer}")
    return {document["_id"] for document in answer["documents"]}


def expect_shows_nothing(node: Node, partition: str = ROOM, why: str = "may not read"):
    """Whatever way its documents are asked for, the answer is one sentence."""
    path, client = documents_path(partition, COLLECTION), node.client()
    collection = path.removesuffix("/documents")
    ways = [("GET", f"{path}/one"), ("GET", path), ("GET", collection.rsplit("/collections/")[0] + "/documents"),
            ("GET", f"{collection}/watch"), ("POST", f"{collection}/find")]  # fmt: skip
    for method, target in ways:
        status, answer = client.request(method, target, {"filter": {}} if method == "POST" else None)
        expect(status == 403 and answer["type"] == "urn:seamesh:problem:not-permitted" and why in answer["detail"],
               f"{method} {target} on {node.name} was answered {status}: {answer}")  # fmt: skip
    client.close()
    for words in (["get", partition, COLLECTION, "one"], ["find", partition, COLLECTION], ["export", partition],
                  ["watch", partition, COLLECTION]):  # fmt: skip
        expect_refused(node.verb(*words, check=False), 4, why, partition)


def kept(node: Node, partition: str = ROOM) -> set[str]:
    """Ids of the living documents in a node's store, whether it shows them or not."""
    store = sqlite3.connect(f"file:{node.directory}/seamesh.db?mode=ro", uri=True)
    try:
        rows = store.execute(
            "SELECT d.key FROM documents d JOIN partitions p ON p.id = d.partition "
            "JOIN collections c ON c.id = d.collection WHERE p.name = ? AND c.name = ? AND d.alive",
            (partition, COLLECTION)).fetchall()  # fmt: skip
    finally:
        store.close()
    # Texts alone: between their kind and a zero.
    return {key[1:-1].decode() for (key,) in rows}


def write(node: Node, identifier: str, partition: str = ROOM) -> int:
    """The status of the answer to a write."""
    client = node.client()
    status, _ = client.request("PUT", documents_path(partition, COLLECTION, identifier), {"by": node.name})
    client.close()
    return status


def write_all(node: Node, *identifiers: str, partition: str = ROOM):
    for identifier in identifiers:
        status = write(node, identifier, partition)
        expect(status in (200, 201), f"a write on {node.name} was answered {status}")


def await_shown(nodes: list[Node], wanted: set[str], partition: str = ROOM, seconds: float = 30):
    """Every node shows exactly these documents; one that knows that it was ended keeps them, and shows nothing."""
    for node in nodes:
        wait_for(seconds, lambda: f"{node.name} shows {sorted(wanted)} of {partition}; it has {_listed(node, partition)}",
                 lambda: _has(node, partition) == wanted, 0.2)  # fmt: skip


def _has(node: Node, partition: str) -> set[str]:
    status, answer = _find(node, partition)
    if status == 200:
        return {document["_id"] for document in answer["documents"]}
    expect(status == 403, f"find on {node.name} answered {status}: {answer}")
    return kept(node, partition) if ends(node, node.name) else set()


def _listed(node: Node, partition: str) -> list[str]:
    return sorted(_has(node, partition))


def level(node: Node, label: str, partition: str = ROOM) -> str:
    """What a device may do in a partition, as a node has it."""
    return _member(node, label, partition)["level"]


def _member(node: Node, label: str, partition: str) -> dict:
    """A device is listed once, whatever memberships it has."""
    answer = json.loads(node.verb("permissions", partition, "--json").stdout)
    (member,) = [member for member in answer["members"] if member["label"] == label]
    return member


def ends(node: Node, label: str) -> list[str]:
    """Ids of the statements that end a device."""
    return [end["id"] for end in _member(node, label, ROOM)["endedBy"]]


def await_level(nodes: list[Node], label: str, wanted: str, partition: str = ROOM, seconds: float = 30):
    for node in nodes:
        wait_for(seconds, lambda: f"{node.name} knows that {label} has {wanted} in {partition}; it has "
                 + level(node, label, partition), lambda: level(node, label, partition) == wanted, 0.2)  # fmt: skip


def await_end(nodes: list[Node], label: str, seconds: float = 30):
    """They know of an end of the device."""
    for node in nodes:
        wait_for(seconds, f"{node.name} knows that {label} was ended", lambda: ends(node, label), 0.2)


def held(node: Node, partition: str = ROOM) -> int:
    """Changes that a node keeps and does not count."""
    return node.partitions(digests=False).get(partition, {}).get("heldChanges", 0)


def next_moment() -> str:
    """A time that lies after all that was done and before all that will be, as `--at` takes it."""
    moment = time.time() + 0.05
    wait_for(5, "time goes by", lambda: time.time() > moment + 0.05, 0.01)
    seconds, rest = divmod(moment, 1)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(rest * 1000):03}Z"


def statements(node: Node) -> list[dict]:
    """All grants, in force or not."""
    return json.loads(node.verb("permissions", "--json").stdout)["rights"]
