"""What nodes cost that have nothing to say to one another."""

import time

from fleets import PARTITION, await_equal, await_meeting, make_fleet
from machine import processor_seconds
from runner import Bench, case
from traffic import Traffic
from waiting import expect, wait_for

# At rest there is one question in 14.5 s at each link, from its two ends in turn, and who is asked receives more than who
# asks: six questions, three from each end, are a node's lasting rate. Five to six of them would be a rate of chance.
_REST_SECONDS = 6 * 14.5
_QUIET_SECONDS = 10


@case("E4: a node at rest that is linked with ten receives at most 100 bytes a second for its sessions")
def rest(bench: Bench):
    nodes = make_fleet(bench.network, "abcdefghijk")
    await_meeting(nodes)
    nodes[0].put_many(PARTITION, "first", 5)
    await_equal(nodes, 5)
    traffic = [Traffic(node.host) for node in nodes]
    _await_quiet(traffic)
    before, used, began = [each.read() for each in traffic], _processor(nodes), time.monotonic()
    time.sleep(_REST_SECONDS)
    seconds = time.monotonic() - began
    passed = [{kind: count - then[kind] for kind, count in each.read().items()} for each, then in zip(traffic, before)]
    for kind in passed[0]:
        received, sent = ([getattr(each[kind], way) / seconds for each in passed] for way in ("received", "sent"))
        packets = sum(each[kind].packets for each in passed) / seconds / len(nodes)
        bench.note(f"{kind}: received {_span(received)}, sent {_span(sent)} bytes a second, {packets:.1f} packets")
    idle = [100 * (now - then) / seconds for now, then in zip(_processor(nodes), used)]
    bench.note(f"processor {min(idle):.2f} to {max(idle):.2f} %")
    await_meeting(nodes, 1)
    # All are alike: their mean is the rate of each. One of them may have more questions at the window's ends, or more
    # acknowledgements that travel alone.
    received = [each["sessions"].received / seconds for each in passed]
    expect(sum(received) / len(received) <= 100 and max(received) <= 115, f"more than 100: {'; '.join(bench.notes)}")


def _await_quiet(traffic: list[Traffic]):
    """What a meeting leaves to be said is said: words about what is held come with the second comparison."""
    def packets() -> list[int]:
        return [each.read()["sessions"].packets for each in traffic]

    def is_quiet() -> bool:
        before = packets()
        time.sleep(_QUIET_SECONDS)
        # In ten seconds a session asks once at the most: three packets at each of ten links.
        return all(now - then <= 40 for now, then in zip(packets(), before))

    wait_for(180, "the sessions have nothing more to say", is_quiet, 0)


def _processor(nodes) -> list[float]:
    return [processor_seconds(node.process.pid) for node in nodes]


def _span(values: list[float]) -> str:
    return f"{min(values):.0f} to {max(values):.0f} (mean {sum(values) / len(values):.0f})"
