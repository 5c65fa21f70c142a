"""Threads that do not come back (faults.md K6), and processes that were only stopped (K7)."""

import time

from builds import HANGING, PRESENT, WATCHED, run_as
from fleets import PARTITION, add_node
from runner import Bench, case
from waiting import expect, wait_for

_STATUS = 9
# TestBuildSwitch counts a thread as hung after two seconds.
_HANG_SECONDS = 2
_STOPPED_SECONDS = 60


@case("a node whose engine hangs still says how it was, and ends by itself with a status of its own; the next start has everything")
def hangs(bench: Bench):
    node = add_node(bench.network, "a", None)
    node.start()
    node.put(PARTITION, "c", "1", {"n": 1})
    node.stop()
    run_as(node, HANGING)
    node.start()
    status = node.ask("/v1/status")
    expect(status["documents"] == 1, f"a node that hangs shows {status['documents']} documents")
    wait_for(30, "the node has ended", lambda: not node.process.is_running, 0.1)
    expect(node.process.status == _STATUS, f"it ended with {node.process.status}")
    with open(node.log) as log:
        expect("of the engine has not come back for 2 s" in log.read(), "it did not say which thread hung")
    run_as(node, PRESENT)
    node.start()
    expect(node.ask("/v1/status")["documents"] == 1, "a document that was acknowledged has gone")


@case("a process that was stopped for a minute, far longer than a thread may hang, goes on")
def stopped(bench: Bench):
    node = add_node(bench.network, "a", None)
    node.start()
    node.stop()
    run_as(node, WATCHED)
    node.start()
    node.pause()
    # It is the time itself that must not count.
    time.sleep(_STOPPED_SECONDS)
    node.resume()
    node.put(PARTITION, "c", "1", {"n": 1})
    time.sleep(2 * _HANG_SECONDS)
    expect(node.process.is_running, f"it ended with {node.process.status}")
    node.put(PARTITION, "c", "2", {"n": 1})
