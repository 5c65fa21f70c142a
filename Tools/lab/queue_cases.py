"""How long reports wait behind large documents, where the link is slow."""

import base64
import json
import threading
import time

from fleets import PARTITION, await_equal, await_meeting, make_fleet
from link_cases import shape
from node import Node, documents_path
from runner import Bench, case
from waiting import Skip, expect, wait_for

_REPORTS = 100
# In bytes, one after each twenty reports.
_DOCUMENTS = (400_000, 560_000, 720_000, 880_000, 1_040_000)
_BITS_A_SECOND = 5_000_000
_PHOTOS = "agency=Laboratory-Photos"
_COLLECTION = "Lab"


@case("E2: reports at 5 Mbit/s pass documents of 1 MB in another partition, p99 within 300 ms")
def another_partition(bench: Bench):
    # The documents are more than the link carries meanwhile: there are always some under way.
    waits = _waits(bench, _PHOTOS, 0.04)
    expect(waits[-2] <= 0.3, f"reports were shown late: {_spread(waits)}")


@case("E2: a report at 5 Mbit/s waits for no more than one document before it in its partition")
def same_partition(bench: Bench):
    # A chain is carried in its order: here the link is done with each document before the next.
    waits = _waits(bench, PARTITION, 0.12)
    longest = _DOCUMENTS[-1] * 8 / _BITS_A_SECOND
    bench.note(f"the largest document takes {longest * 1_000:.0f} ms")
    expect(waits[-1] <= longest * 1.05 + 0.3, f"reports were shown late: {_spread(waits)}")


def _waits(bench: Bench, partition: str, pause: float) -> list[float]:
    """Seconds from the answer to each report until the other node's watch shows it, ascending."""
    nodes = writer, reader = make_fleet(bench.network, "ab")
    for node in nodes:
        node.subscribe(_PHOTOS)
    await_meeting(nodes)
    for name in (PARTITION, _PHOTOS):
        writer.put(name, _COLLECTION, "first", {"number": 0})
        await_equal(nodes, 1, partition=name)
    if not shape(writer, f"{_BITS_A_SECOND}bit"):
        raise Skip("this kernel limits no rates")
    shown = _Shown(reader)
    answered: dict[str, float] = {}
    documents = threading.Thread(target=_write_documents, args=(bench, writer, partition, pause))
    documents.start()
    client, began = writer.client(), time.monotonic()
    for number in range(_REPORTS):
        time.sleep(max(0, began + number * pause - time.monotonic()))
        name = f"report-{number:03}"
        status, answer = client.request(
            "PUT", documents_path(PARTITION, _COLLECTION, name), {"number": number, "text": "x" * 250})
        expect(status == 201, f"a write answered {status}: {answer}")
        answered[name] = time.monotonic()
    client.close()
    documents.join()
    wait_for(60, lambda: f"all reports are shown; now {len(shown.at)}", lambda: len(shown.at) >= _REPORTS)
    same = len(_DOCUMENTS) if partition == PARTITION else 0
    await_equal(nodes, 1 + _REPORTS + same)
    waits = sorted(shown.at[name] - time_of_answer for name, time_of_answer in answered.items())
    bench.note(_spread(waits))
    return waits


def _spread(waits: list[float]) -> str:
    half, most, last = waits[len(waits) // 2], waits[len(waits) * 9 // 10], waits[-1]
    return f"p50 {half * 1_000:.0f}, p90 {most * 1_000:.0f}, p99 {waits[-2] * 1_000:.0f}, worst {last * 1_000:.0f} ms"


def _write_documents(bench: Bench, writer: Node, partition: str, pause: float):
    client, began = writer.client(), time.monotonic()
    for number, size in enumerate(_DOCUMENTS):
        body = {"content": base64.b64encode(bench.random.randbytes(size * 3 // 4)).decode()}
        time.sleep(max(0, began + (number * 20 + 5) * pause - time.monotonic()))
        client.request("PUT", documents_path(partition, _COLLECTION, f"document-{number}"), body)
    client.close()


class _Shown:
    """When a watch first told of each report."""

    def __init__(self, node: Node):
        self.at: dict[str, float] = {}
        client = node.client(120)
        path = documents_path(PARTITION, _COLLECTION).removesuffix("/documents")
        query = "filter=" + '{"number":{"$gte":0}}'.translate({ord(c): f"%{ord(c):02X}" for c in '{}":$'})
        self._events = client.events("GET", f"{path}/watch?{query}")
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        try:
            for line in self._events:
                if not line.startswith(b"data: "):
                    continue
                now, data = time.monotonic(), json.loads(line[6:])
                name = data.get("document", {}).get("_id", "")
                if name.startswith("report-"):
                    self.at.setdefault(name, now)
        except (OSError, ValueError):
            # The node has ended.
            return
