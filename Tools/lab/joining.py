"""What cases about joining look at."""

import json
import subprocess

from node import Node
from runner import Bench
from waiting import expect


def devices(node: Node) -> list[dict]:
    return json.loads(node.verb("devices", "--json").stdout)["devices"]


def invitations(node: Node) -> list[dict]:
    return json.loads(node.verb("invites", "--json").stdout)["invitations"]


def new_device(bench: Bench, name: str) -> Node:
    """A device that is in no fleet, on a host without a responder."""
    return Node(bench.network.host(name))


def expect_refused(done: subprocess.CompletedProcess, status: int, *words: str):
    """One sentence that says why, and nothing else."""
    expect(done.returncode == status, f"it ended with {done.returncode}, not {status}: {done.stderr.strip()}")
    expect_sentence(done.stderr, *words)


def expect_sentence(text: str, *words: str):
    expect(len(text.strip().splitlines()) == 1, f"not one sentence: {text}")
    for word in words:
        expect(word in text, f"it does not speak of {word!r}: {text}")
