"""Days of real work, replayed (scenarios.md P01, P12)."""

import json
import os

from fleets import PARTITION, add_node, await_meeting, make_fleet
from node import Node
from runner import Bench, case
from waiting import Skip, expect, wait_for

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_DATA = os.path.join(_ROOT, "..", "shared", "data", "ofish")


def _load(path: str) -> list[dict]:
    try:
        with open(os.path.join(_DATA, path), encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        raise Skip(f"the data of the apps is not here: {path}") from None


def _import(node: Node, documents: list[dict], collection: str, *where: str):
    path = f"{node.directory}.import"
    with open(path, "w", encoding="utf-8") as file:
        for document in documents:
            file.write(json.dumps(document, ensure_ascii=False) + "\n")
    node.verb("import", *where, collection, path)


def _meet(bench: Bench, nodes: list[Node], pair: list[Node]):
    """Only these two reach one another, until they hold the same."""
    bench.network.heal()
    for node in nodes:
        others = [other.host for other in nodes if other is not node and not {node, other} <= set(pair)]
        bench.network.split([node.host], others)
    wait_for(90, f"{pair[0].name} and {pair[1].name} hold the same", lambda: pair[0].digests() == pair[1].digests(), 0.3)


def _documents(node: Node, partition: str, collection: str) -> list[dict]:
    text = node.verb("find", partition, collection, "--limit", "1000", "--json").stdout
    found = []
    for line in text.splitlines():
        value = json.loads(line)
        found += value["documents"] if "documents" in value else [value]
    return found


@case("P12: 569 duty entries dealt to four devices that meet by twos in random order")
def duty(bench: Bench):
    entries = _load("docs/dutychange.json")
    nodes = make_fleet(bench.network, "abcd")
    await_meeting(nodes)
    for place, node in enumerate(nodes):
        bench.network.split([node.host], [other.host for other in nodes if other is not node])
    for place, node in enumerate(nodes):
        _import(node, entries[place::4], "DutyChange", PARTITION)
    meetings = 0
    while any(node.changes(PARTITION) < len(entries) for node in nodes):
        expect(meetings < 40, "forty meetings do not do")
        _meet(bench, nodes, bench.random.sample(nodes, 2))
        meetings += 1
    bench.note(f"{meetings} meetings")
    expect(len({str(node.digests()) for node in nodes}) == 1, "the digests differ")
    newest = _newest(entries)
    for node in nodes:
        held = _documents(node, PARTITION, "DutyChange")
        expect(len(held) == len(entries) == 569, f"{node.name} shows {len(held)} entries")
        expect(_newest(held) == newest, f"{node.name} shows other newest entries")


def _newest(entries: list[dict]) -> dict[str, str]:
    """The last entry of each officer, by date; equal dates by id."""
    ordered = sorted(entries, key=lambda entry: (entry["date"]["$date"], entry["_id"]["$oid"]))
    return {entry["user"]["email"]: entry["_id"]["$oid"] for entry in ordered}


@case("P01: thirty reports of three devices that meet by twos")
def offline_day(bench: Bench):
    reports = _load("generated/boarding-reports.json")[:30]
    a, b, c = nodes = make_fleet(bench.network, "abc")
    await_meeting(nodes)
    for node in nodes:
        bench.network.split([node.host], [other.host for other in nodes if other is not node])
    for place, node in enumerate(nodes):
        _import(node, reports[place::3], "BoardingReports", PARTITION)
    for pair in ([a, b], [b, c], [c, a]):
        _meet(bench, nodes, pair)
    expect(len({str(node.digests()) for node in nodes}) == 1, "the digests differ")
    for node in nodes:
        expect(len(_documents(node, PARTITION, "BoardingReports")) == 30, f"{node.name} does not hold thirty reports")


@case("156 reports imported by agency on three devices: each holds what it wants, and all of it where that is wanted")
def agencies(bench: Bench):
    reports = _load("generated/boarding-reports.json")
    names = sorted({report["agency"] for report in reports})
    collector = add_node(bench.network, "all", None)
    collector.start()
    collector.subscribe("agency=*")
    devices = []
    for place, agency in enumerate(names):
        device = add_node(bench.network, f"d{place}", collector, agency=agency)
        device.start()
        own = [report for report in reports if report["agency"] == agency]
        _import(device, own, "BoardingReports", "--partition-by", "agency")
        devices.append((device, f"agency={agency}", len(own)))
    counts = {name: count for _, name, count in devices}
    wait_for(60, "all reports are where all are wanted", lambda: _documents_by_partition(collector) == counts, 0.3)
    expect(sum(counts.values()) == 156, f"{sum(counts.values())} reports")
    held = collector.digests()
    for device, name, _ in devices:
        wait_for(20, f"{device.name} agrees on {name}", lambda: device.digests().get(name) == held[name], 0.3)
        expect(set(device.digests()) == {name}, f"{device.name} holds {sorted(device.digests())}, wanting {name} alone")
    device = devices[0][0]
    device.subscribe("agency=*")
    wait_for(20, f"{device.name} holds the others', too", lambda: device.digests() == held, 0.3)


def _documents_by_partition(node: Node) -> dict[str, int]:
    return {name: row["documents"] for name, row in node.partitions(digests=False).items()}
