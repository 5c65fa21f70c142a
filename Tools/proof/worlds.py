"""Runs worlds of the simulator, and reads what they came to."""

import dataclasses
import os
import re
import subprocess

from planting import VARIABLE

_FAILURE = re.compile(r"^seamesh simulate --seed (\d+): (.*)$", re.MULTILINE)
_SUMMARY = re.compile(r"^(\d+) worlds, (\d+) events, (\d+) changes, (\d+) failed$", re.MULTILINE)
_COUNT = re.compile(r"^  (\w+) (\d+)\b", re.MULTILINE)
# Of one call: a world is an endless one when it takes longer.
_SECONDS_PER_WORLD = 60


@dataclasses.dataclass
class Outcome:
    #: Seed, and what was broken there.
    failures: list
    events: int = 0
    changes: int = 0
    counts: dict = dataclasses.field(default_factory=dict)
    #: The process ended without a word of its own.
    crash: str = ""


def run(seamesh, first: int, count: int, mistake: int = 0, *options: str) -> Outcome:
    environment = dict(os.environ, **{VARIABLE: str(mistake)})
    command = [str(seamesh), "simulate", "--seed", str(first), "--count", str(count), *options]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_SECONDS_PER_WORLD * count)
    except subprocess.TimeoutExpired:
        return Outcome([], crash="does not end")
    failures = [(int(seed), what) for seed, what in _FAILURE.findall(done.stdout)]
    summary = _SUMMARY.search(done.stdout)
    if summary is None:
        return Outcome(failures, crash=_reason(done))
    counts = {name: int(number) for name, number in _COUNT.findall(done.stdout)}
    return Outcome(failures, int(summary[2]), int(summary[3]), counts)


def _reason(done) -> str:
    """A precondition of the engine that stopped the process, as it says itself."""
    stop = re.search(r"Fatal error: (.*)", done.stderr)
    return f"precondition: {stop[1]}" if stop else f"ended with status {done.returncode}"
