"""The table of cases, and how they are run: several at a time, each on a network of its own."""

import concurrent.futures
import os
import random
import time
import traceback
from dataclasses import dataclass, field

from network import Network
from waiting import Failed, Skip

_LOG_LINES = 12


@dataclass(frozen=True)
class Case:
    name: str
    body: object
    is_long: bool
    # Why it is not run unless it is asked for by name: what it wants is not built, or it shows a fault that is known.
    open: str = ""


@dataclass
class Bench:
    """What a case gets to work with."""

    network: Network
    random: random.Random
    is_long: bool
    notes: list[str] = field(default_factory=list)

    def note(self, text: str):
        """A figure worth seeing beside the case's line."""
        self.notes.append(text)


cases: list[Case] = []


def case(name: str, is_long: bool = False, open: str = ""):
    def add(body):
        cases.append(Case(name, body, is_long, open))
        return body
    return add


def run_cases(chosen: list[Case], base: str, seed: int, jobs: int, is_long: bool) -> dict[str, int]:
    """Prints a line for each case as it ends, and answers how many ended how."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        running = [
            pool.submit(_run, case, place, base, seed, is_long) for place, case in enumerate(chosen)
        ]
        for done in concurrent.futures.as_completed(running):
            outcome, text = done.result()
            counts[outcome] += 1
            print(text, flush=True)
    return counts


def _run(case: Case, place: int, base: str, seed: int, is_long: bool) -> tuple[str, str]:
    began, network = time.monotonic(), None
    directory = f"{base}/{place}"
    os.makedirs(directory)
    try:
        network = Network(f"sm{os.getpid()}-{place}", directory)
        bench = Bench(network, random.Random(f"{seed}/{case.name}"), is_long)
        case.body(bench)
        notes = "".join(f"; {note}" for note in bench.notes)
        return "passed", f"ok {case.name} ({time.monotonic() - began:.1f} s{notes})"
    except Skip as reason:
        return "skipped", f"skip {case.name}: {reason}"
    except Exception as error:
        why = str(error) if isinstance(error, Failed) else traceback.format_exc().strip()
        return "failed", f"FAIL {case.name}: {why}{_tails(network)}"
    finally:
        if network:
            network.close()


def _tails(network: Network | None) -> str:
    text = ""
    for host in network.hosts.values() if network else []:
        for node in host.nodes:
            if os.path.exists(node.log):
                with open(node.log, errors="replace") as file:
                    lines = file.readlines()
                text += f"\n  -- {node.name}: {node.log}\n" + "".join(f"  {line}" for line in _shown(lines)).rstrip()
    return text


def _shown(lines: list[str]) -> list[str]:
    """The end, or what a process that ended in a trap said of it, ahead of its long list of frames."""
    for index, line in enumerate(lines):
        if "Fatal error" in line or "Program crashed" in line:
            return lines[max(0, index - 2) : index + _LOG_LINES]
    return lines[-_LOG_LINES:]
