"""Fleets of nodes, and when they agree."""

from network import Network
from node import Node
from responder import Responder
from waiting import expect, wait_for

PARTITION = "agency=Laboratory"


def add_node(
    network: Network, name: str, inviter: Node | None, bridge: str = "lan", responder: bool = True,
    agency: str = "Laboratory", role: str = "", init: tuple[str, ...] = (),
) -> Node:  # fmt: skip
    """A host with a responder and a node that is a member of the fleet but does not run yet."""
    host = network.host(name, bridge)
    if responder:
        Responder(host)
    return enrol(Node(host), inviter, agency, role, init)


def enrol(
    node: Node, inviter: Node | None, agency: str = "Laboratory", role: str = "", init: tuple[str, ...] = ()
) -> Node:
    """Without an inviter it founds a fleet, with these options of `init`."""
    if inviter is None:
        node.init(*init, agency=agency)
    else:
        node.join(inviter, agency, role)
    return node


def make_fleet(network: Network, names: str, *run_options: str, responder: bool = True) -> list[Node]:
    """Nodes on one LAN that run, each subscribed to the laboratory's partition; the first founded the fleet."""
    nodes: list[Node] = []
    for name in names:
        node = add_node(network, name, nodes[0] if nodes else None, responder=responder)
        node.start(*run_options)
        node.subscribe(PARTITION)
        nodes.append(node)
    return nodes


def await_meeting(nodes: list[Node], seconds: float = 60):
    """Everyone is connected to everyone."""
    for node in nodes:
        wait_for(seconds, f"{node.name} is connected to {len(nodes) - 1} others",
                 lambda: len(node.peers()) >= len(nodes) - 1, 0.2)  # fmt: skip


def await_equal(nodes: list[Node], changes: int, seconds: float = 60, partition: str = PARTITION):
    """All hold so many changes of the partition, with equal state digests of everything."""
    for node in nodes:
        wait_for(seconds, lambda: f"{node.name} holds {changes} changes of {partition}; now {_counts(nodes, partition)}",
                 lambda: node.changes(partition) >= changes, 0.2)  # fmt: skip
    wait_for(15, "equal state digests", lambda: _are_equal(nodes), 0.3)
    for node in nodes:
        expect(node.changes(partition) == changes, f"{node.name} holds {node.changes(partition)} changes, not {changes}")


def _are_equal(nodes: list[Node]) -> bool:
    first, *others = [node.digests() for node in nodes]
    return bool(first) and all(other == first for other in others)


def _counts(nodes: list[Node], partition: str) -> str:
    return ", ".join(f"{node.name} {node.changes(partition)}" for node in nodes)
