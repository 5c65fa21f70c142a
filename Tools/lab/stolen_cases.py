"""Two copies of one device, of which one is a thief's."""

import os

from clone_cases import copy_of
from joining import devices
from node import Node
from rights import await_shown, fleet, sign, split, write, write_all
from runner import Bench, case
from waiting import expect, wait_for


@case("stolen: two copies of a device sign under the same numbers; once it is revoked neither goes on, and all agree")
def stolen(bench: Bench):
    a, b, thief, c = _steal(bench)
    bench.network.heal()
    everything = {"before", "honest-1", "honest-2", "stolen-1", "stolen-2", "stolen-3"}
    await_shown([a, b, thief, c], everything, seconds=75)
    sign(a, "revoke", "b", "--compromised")
    _expect_ended(b, thief)
    await_shown([a, c], everything)
    _expect_sound(a, c, everything)


@case("stolen: what the thief wrote out of the admin's sight falls, and the owner's stays")
def stolen_out_of_sight(bench: Bench):
    a, b, thief, c = _steal(bench)
    sign(a, "revoke", "b", "--compromised")
    bench.network.heal()
    _expect_ended(b, thief)
    await_shown([a, c], {"before", "honest-1", "honest-2"}, seconds=75)
    _expect_sound(a, c, {"before", "honest-1", "honest-2"})


def _steal(bench: Bench) -> list[Node]:
    """An admin beside the owner, and somebody beside the thief, who has a copy of the owner's directory. Both have written."""
    a, b, c = fleet(bench, "abc")
    write_all(b, "before")
    await_shown([a, b, c], {"before"})
    b.stop()
    thief = copy_of(bench, b)
    # Each finds its mark gone, declares a new replica for its next write, and so signs under the other's number.
    for node in (b, thief):
        os.remove(f"{node.directory}/replica.state")
    split(bench, [a, b], [c, thief])
    for node in (b, thief):
        node.start("--listen", "7000")
    write_all(b, "honest-1", "honest-2")
    write_all(thief, "stolen-1", "stolen-2", "stolen-3")
    await_shown([a], {"before", "honest-1", "honest-2"}, seconds=75)
    await_shown([c], {"before", "stolen-1", "stolen-2", "stolen-3"}, seconds=75)
    replicas = {node.ask("/v1/status")["replica"] for node in (b, thief)}
    expect(len(replicas) == 2, "both write under one replica, which is another case")
    return [a, b, thief, c]


def _expect_ended(*copies: Node):
    """They know it, write nothing, and do neither after a kill."""
    for node in copies:
        wait_for(75, f"{node.name} knows that it was ended", lambda: "device-ended" in node.findings(), 0.3)
        expect(write(node, "after") == 403, f"{node.name} goes on")
        node.kill()
        node.start()
        expect(write(node, "after") == 403, f"{node.name} goes on after a restart")


def _expect_sound(a: Node, c: Node, documents: set[str]):
    """Both agree, and do so after a restart."""
    for _ in range(2):
        await_shown([a, c], documents)
        wait_for(30, "a and c agree", lambda: a.digests() == c.digests(), 0.3)
        for node in (a, c):
            expect(len(devices(node)) == 3, f"{node.name} knows {devices(node)}")
            node.stop()
            node.start()
