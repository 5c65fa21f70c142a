"""Nodes that run as another build than theirs (Docs/Decisions/0028-nodes-of-other-builds-in-tests.md)."""

import sqlite3

from node import Node
from waiting import expect

EARLIER, PRESENT, LATER = "earlier", "present", "later"
# This build with a watchdog of two seconds, and the same with an engine that hangs.
WATCHED, HANGING = "watched", "hangs"
_SWITCH = "SEAMESH_TEST_BUILD"

# As TestBuild in Sources/Replication/Session/TestBuild.swift writes them into the options of changes.
CODEC = bytes([0x01, 0x18, 200])
CRITICAL = bytes([0x19, 0x90, 0x00, 0x41, 0x01])
INFORMATIVE = bytes([0xA1, 0x07, 0x41, 0x02])
# Numbers of messages: one for those alone who read it, and one that anybody may pass over.
FOR_READERS, FOR_ANYBODY = 40, 70


def run_as(node: Node, build: str):
    """From its next start on it is EARLIER or LATER, or what it is (PRESENT): this, WATCHED or HANGING."""
    node.environment.pop(_SWITCH, None)
    if build != PRESENT:
        with open(f"{node.directory}/fleet.id") as file:
            node.environment[_SWITCH] = f"{build}:{file.read().strip()}"


def said(node: Node, number: int, to: Node) -> int:
    """How often a node has said a message of a later build to another."""
    wanted = f"message={number} device={to.ready_line['device'][:8]}"
    return sum(wanted in line and "says what a later build knows" in line for line in _log(node))


def expect_no_breach(nodes: list[Node]):
    """Nobody took anything that another said for a breach of the protocol."""
    for node in nodes:
        for line in _log(node):
            expect("broke the protocol" not in line, f"{node.name}: {line}")
        expect("rule-broken" not in node.findings(), f"{node.name} blames somebody: {node.findings()}")


def _log(node: Node) -> list[str]:
    with open(node.log, errors="replace") as file:
        return file.read().splitlines()


def uses(node: Node, mark: bytes) -> bool:
    """Does a stopped node hold changes whose bytes say so?"""
    return any(mark in body for (body,) in _ask(node, "SELECT body FROM runs"))


def statements(node: Node) -> set[bytes]:
    """Ids of all statements that a stopped node holds, known or not."""
    return {id for (id,) in _ask(node, "SELECT id FROM statements")}


def _ask(node: Node, question: str) -> list[tuple]:
    store = sqlite3.connect(f"file:{node.directory}/seamesh.db?mode=ro", uri=True)
    try:
        return store.execute(question).fetchall()
    finally:
        store.close()
