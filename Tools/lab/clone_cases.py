"""Directories that were copied, so that two processes believe to be one device (faults.md S6, S7)."""

import hashlib
import os
import shutil

from fleets import PARTITION, await_equal, make_fleet
from node import Node
from responder import Responder
from runner import Bench, case
from waiting import expect, wait_for

_RENEWED = "goes on under a new replica id"
_FORKED = "two histories of one replica"


def copy_of(bench: Bench, original: Node) -> Node:
    """The stopped node's directory, on another host."""
    host = bench.network.host("clone")
    Responder(host)
    clone = Node(host)
    shutil.copytree(original.directory, clone.directory, ignore=shutil.ignore_patterns("api.sock"))
    return clone


def _says(nodes: list[Node], words: str) -> bool:
    for node in nodes:
        with open(node.log, errors="replace") as file:
            if words in file.read():
                return True
    return False


def _hide(clone: Node):
    """Makes the copy's note agree with the copied database, as a copy of a whole disk does."""
    path = f"{clone.directory}/replica.state"
    with open(path) as file:
        lines = file.read().splitlines()
    inode = os.stat(f"{clone.directory}/seamesh.db").st_ino
    kept = [line for line in lines if not line.startswith(("#", "check:"))]
    kept = [f"inode: {inode}" if line.startswith("inode:") else line for line in kept]
    check = hashlib.sha256("\n".join(kept).encode()).hexdigest()[:16]
    with open(path, "w") as file:
        file.write("\n".join(kept + [f"check: {check}"]) + "\n")


@case("S7: a copied directory draws a new replica id, and both copies go on")
def copied_directory(bench: Bench):
    nodes = make_fleet(bench.network, "ab")
    a, b = nodes
    a.put_many(PARTITION, "shared", 20)
    await_equal(nodes, 20)
    a.stop()
    clone = copy_of(bench, a)
    for node in (a, clone):
        node.start("--listen", "0")
    for node in (a, clone):
        node.put_many(PARTITION, node.name, 10)
    expect(_says([clone], _RENEWED), "the copy went on under the same replica id")
    expect(not _says([a], _RENEWED), "the original drew a new replica id")
    await_equal([a, b, clone], 40, 90)


@case("S7: two copies that wrote under one replica id are found out, and nothing acknowledged is lost")
def forked_replica(bench: Bench):
    network = bench.network
    nodes = make_fleet(network, "ab")
    a, b = nodes
    a.put_many(PARTITION, "shared", 20)
    await_equal(nodes, 20)
    a.stop()
    clone = copy_of(bench, a)
    _hide(clone)
    network.split([a.host, b.host], [clone.host])
    for node in (a, clone):
        node.start("--listen", "0")
        node.put_many(PARTITION, f"alone-{node.name}", 10)
    expect(not _says([a, clone], _RENEWED), "a copy noticed, which this case wants to hide from it")
    expect(a.ask("/v1/status")["replica"] == clone.ask("/v1/status")["replica"], "the copies write under two replicas")
    wait_for(30, "b holds the original's branch", lambda: b.changes(PARTITION) >= 30, 0.3)
    network.heal()
    wait_for(90, "somebody sees the fork", lambda: _says([a, b, clone], _FORKED), 0.3)
    for node in (a, b, clone):
        node.put_many(PARTITION, f"after-{node.name}", 5)
    everyone = [a, b, clone]
    wanted = {f"{prefix}-{number:05}" for prefix, count in [
        ("shared", 20), ("alone-a", 10), ("alone-clone", 10), ("after-a", 5), ("after-b", 5), ("after-clone", 5),
    ] for number in range(count)}  # fmt: skip
    for node in everyone:
        wait_for(90, lambda: f"{node.name} shows all; it lacks {sorted(wanted - _shown(node))[:5]}",
                 lambda: wanted <= _shown(node), 0.5)  # fmt: skip
    wait_for(60, "equal state digests", lambda: len({str(node.digests()) for node in everyone}) == 1, 0.5)
    replicas = {node.ask("/v1/status")["replica"] for node in (a, clone)}
    expect(len(replicas) == 2, "both copies still write under one replica id")


def _shown(node: Node) -> set[str]:
    status, answer = node.client().request(
        "POST", f"/v1/partitions/{PARTITION.replace('=', '%3D')}/collections/Lab/find", {"filter": {}, "limit": 1000})
    expect(status == 200, f"find answered {status}: {answer}")
    return {document["_id"] for document in answer["documents"]}
