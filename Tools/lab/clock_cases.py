"""Wall clocks that jump while a node runs (faults.md T1)."""

from clocks import YEAR, JumpingClock
from fleets import PARTITION, add_node, await_equal, await_meeting
from node import Node, documents_path
from runner import Bench, case
from waiting import expect, wait_for

_SECONDS = 10


@case("T1: a clock that jumps by years, back and forth, holds up neither writes nor peers, and the last write wins")
def jumps(bench: Bench):
    clock = JumpingClock(bench, "a")
    a = add_node(bench.network, "a", None)
    a.environment = clock.environment
    a.start()
    b = add_node(bench.network, "b", a)
    b.start()
    nodes = [a, b]
    for node in nodes:
        node.subscribe(PARTITION)
    await_meeting(nodes)
    replicas, writes = None, 0
    for years in (0, -20, 20, 0, 20, -20, 0):
        clock.set(years * YEAR)
        for node in nodes + nodes:
            writes += 1
            node.put(PARTITION, "Lab", "one", {"n": writes})
            for other in nodes:
                wait_for(_SECONDS, f"{other.name} shows write {writes} with {years} years", lambda: _shown(other) == writes, 0.02)
        expect(len(a.peers()) == len(b.peers()) == 1, f"a jump of {years} years ended the connection")
        replicas = replicas or _replicas(nodes)
    expect(_replicas(nodes) == replicas, "a jump of the clock drew a new replica id")
    await_equal(nodes, writes)


def _shown(node: Node):
    client = node.client()
    status, document = client.request("GET", documents_path(PARTITION, "Lab", "one"))
    client.close()
    return document.get("n") if status == 200 else None


def _replicas(nodes: list[Node]) -> list[str]:
    return [node.ask("/v1/status")["replica"] for node in nodes]
