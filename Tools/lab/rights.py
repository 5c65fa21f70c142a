"""What cases about rights ask for and look at."""

import json
import time

from fleets import add_node, await_meeting
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


def shown(node: Node, partition: str = ROOM) -> set[str]:
    """Ids of the documents that a node shows."""
    target = documents_path(partition, COLLECTION).removesuffix("/documents") + "/find"
    client = node.client()
    status, answer = client.request("POST", target, {"filter": {}, "limit": 1000})
    client.close()
    expect(status == 200, f"find on {node.name} answered {status}: {answer}")
    return {document["_id"] for document in answer["documents"]}


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
    """Every node shows exactly these documents."""
    for node in nodes:
        wait_for(seconds, lambda: f"{node.name} shows {sorted(wanted)} of {partition}; it shows {_listed(node, partition)}",
                 lambda: shown(node, partition) == wanted, 0.2)  # fmt: skip


def _listed(node: Node, partition: str) -> list[str]:
    return sorted(shown(node, partition))


def level(node: Node, label: str, partition: str = ROOM) -> str:
    """What a device may do in a partition, as a node has it."""
    return max((member["level"] for member in _memberships(node, label, partition)), key=_LEVELS.index)


_LEVELS = ["none", "carry", "read", "write", "manage"]


def _memberships(node: Node, label: str, partition: str) -> list[dict]:
    """One, and another where it was promoted."""
    answer = json.loads(node.verb("permissions", partition, "--json").stdout)
    return [member for member in answer["members"] if member["label"] == label]


def ends(node: Node, label: str) -> list[str]:
    """Ids of the statements that end a device."""
    return [end["id"] for member in _memberships(node, label, ROOM) for end in member["endedBy"]]


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
