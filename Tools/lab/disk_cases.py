"""Disks that are slow."""

import threading
import time

from fleets import PARTITION, add_node, await_equal, await_meeting
from node import documents_path
from preloading import preloaded
from runner import Bench, case
from waiting import expect

_SYNC = 0.05
_WRITES = 400
_COLLECTION = "Lab"


@case("S2: on a disk of 50 ms a sync a write waits for no more than five of them, p99, while a peer writes as well")
def slow_syncs(bench: Bench):
    slow = add_node(bench.network, "a", None)
    slow.environment = preloaded(bench, "disk", LAB_SYNC_MILLISECONDS=str(int(_SYNC * 1_000)))
    slow.start()
    slow.subscribe(PARTITION)
    other = add_node(bench.network, "b", slow)
    other.start()
    other.subscribe(PARTITION)
    await_meeting([slow, other])
    writer = threading.Thread(target=_write, args=(other, "other", 0.02))
    writer.start()
    waits = sorted(_write(slow, "own", 0))
    writer.join()
    await_equal([slow, other], 2 * _WRITES)
    median, most = waits[len(waits) // 2], waits[len(waits) * 99 // 100]
    bench.note(f"{_WRITES} writes: median {median * 1_000:.0f} ms, p99 {most * 1_000:.0f} ms, worst {waits[-1] * 1_000:.0f} ms")
    expect(median >= _SYNC, "a write was acknowledged before its sync")
    # The machine may have been elsewhere for a moment.
    expect(most <= 5 * _SYNC + 0.02, f"writes waited {most * 1_000:.0f} ms at p99, longer than five syncs")


def _write(node, prefix: str, pause: float) -> list[float]:
    """Seconds of each write until its answer. They are large enough that the log is carried over a few times."""
    client, waits = node.client(), []
    for number in range(_WRITES):
        begun = time.monotonic()
        target = documents_path(PARTITION, _COLLECTION, f"{prefix}-{number}")
        status, answer = client.request("PUT", target, {"number": number, "text": "x" * 8_000})
        waits.append(time.monotonic() - begun)
        expect(status == 201, f"a write answered {status}: {answer}")
        time.sleep(pause)
    client.close()
    return waits
