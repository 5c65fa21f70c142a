"""Queries whose results are large: what a node of little memory must outlive (faults.md K5)."""

import json
import re
import threading
from urllib.parse import quote

from fleets import PARTITION, add_node
from memory import little_memory
from node import Node
from runner import Bench, case
from waiting import expect

_DOCUMENTS = 20_000
_MEGABYTE = 1024
#: Of one question: what a result may hold, what is read at once, and what the heap keeps of both.
_ONE = 24 * _MEGABYTE
#: Of many at once beside that: each has a thread, and each of the heap's arenas keeps some of what was freed.
_MANY = 160 * _MEGABYTE
_AT_ONCE = 32
_LITTLE = 64 * _MEGABYTE * 1_024
#: As many as can be connected, but for a few.
_ALL = 60
#: Refused for the size of the result, or for those of others.
_ANSWERS = {200, 413, 503}


@case("a node's memory is bounded while users ask for sorted results that are large, and many at once")
def large_results(bench: Bench):
    node = add_node(bench.network, "a", None)
    node.start()
    _import(node, "small", (_small(number) for number in range(_DOCUMENTS)))
    _import(node, "large", ({"_id": f"r{n}", "n": n, "text": "x" * 200_000} for n in range(200)))
    before = _memory(node)
    by_text = {"sort": {"text": 1}, "projection": {"n": 1}}
    for collection, question in (
        ("small", {"sort": {"n": 1}}), ("small", {"sort": {"n": -1}, "limit": 6_000}), ("small", {}), ("large", by_text),
        ("large", by_text | {"limit": 150}), ("large", {"filter": {"n": {"$gt": 3}}, "sort": {"n": 1}}),
    ):
        status = _find(node, collection, question)
        expect(status in _ANSWERS, f"{question} was answered with {status}")
    grown = _memory(node) - before
    expect(grown <= _ONE, f"one question after the other took {grown} kB beside the {before} kB of before")
    answers = _at_once(node, {"sort": {"n": 1}, "limit": 6_000}, _AT_ONCE)
    expect(set(answers) <= _ANSWERS and 200 in answers, f"{_AT_ONCE} at once were answered with {sorted(set(answers))}")
    grown = _memory(node) - before
    expect(grown <= _MANY, f"{_AT_ONCE} questions at once took {grown} kB beside the {before} kB of before")
    node.expect_alive()
    expect(_find(node, "small", {"limit": 1}) == 200, "a small question after many large ones is refused")


@case("A14: a process of 64 MB outlives sixty who ask for sorted results at once")
def lives_on_little(bench: Bench):
    with little_memory(bench.network.name, _LITTLE) as prefix:
        node = add_node(bench.network, "a", None)
        node.prefix = prefix
        try:
            node.start()
            _import(node, "small", (_small(number) for number in range(_DOCUMENTS)))
            for _ in range(3):
                answers = _at_once(node, {"sort": {"n": 1}, "limit": 6_000}, _ALL)
                expect(set(answers) <= _ANSWERS and 200 in answers, f"{_ALL} at once were answered with {sorted(set(answers))}")
                node.expect_alive()
            bench.note(f"at the most {_memory(node) // _MEGABYTE} MB resident, files that it maps among them")
            node.stop()
        finally:
            node.end()


def _small(number: int) -> dict:
    return {"_id": f"r{number:05}", "n": number * 7_919 % _DOCUMENTS, "text": "x" * 250, "crew": [{"name": "ann"}]}


def _path(collection: str, verb: str) -> str:
    return f"/v1/partitions/{quote(PARTITION, safe='')}/collections/{collection}/{verb}"


def _import(node: Node, collection: str, documents):
    path = f"{node.directory}-{collection}.jsonl"
    with open(path, "w") as file:
        file.writelines(json.dumps(document) + "\n" for document in documents)
    node.verb("import", PARTITION, collection, path, seconds=300)


def _find(node: Node, collection: str, question: dict) -> int:
    client = node.client(120)
    status, _ = client.request("POST", _path(collection, "find"), question)
    client.close()
    return status


def _at_once(node: Node, question: dict, count: int) -> list[int]:
    answers = []
    asking = [threading.Thread(target=lambda: answers.append(_find(node, "small", question))) for _ in range(count)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    return answers


def _memory(node: Node) -> int:
    """The most that the process had resident, in kB."""
    with open(f"/proc/{node.process.pid}/status") as status:
        return int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1))
