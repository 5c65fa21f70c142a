"""Runs the laboratory's cases; started by Tools/lan-lab, which makes the namespaces that this needs."""

import argparse
import random
import signal
import sys

import admin_cases  # noqa: F401
import admission_cases  # noqa: F401
import budget_cases  # noqa: F401
import build_cases  # noqa: F401
import clock_cases  # noqa: F401
import clone_cases  # noqa: F401
import copy_cases  # noqa: F401
import discovery_cases  # noqa: F401
import disk_cases  # noqa: F401
import doctor_cases  # noqa: F401
import ending_cases  # noqa: F401
import fleet_cases  # noqa: F401
import forward_cases  # noqa: F401
import hang_cases  # noqa: F401
import joining_cases  # noqa: F401
import kill_cases  # noqa: F401
import link_cases  # noqa: F401
import load_cases  # noqa: F401
import office_cases  # noqa: F401
import page_cases  # noqa: F401
import path_cases  # noqa: F401
import query_cases  # noqa: F401
import queue_cases  # noqa: F401
import replay_cases  # noqa: F401
import rest_cases  # noqa: F401
import rights_cases  # noqa: F401
import shore_cases  # noqa: F401
import stolen_cases  # noqa: F401
import stranger_cases  # noqa: F401
import wall_cases  # noqa: F401
from node import Node
from runner import cases, run_cases

# With more at a time, nodes on two cores starve one another.
_JOBS = 4


def main() -> int:
    options = _options()
    chosen = [case for case in cases if _is_chosen(case, options)]
    if options.list:
        print("\n".join(_line(case) for case in cases))
        return 0
    if not chosen:
        print("No case has such a name; --list shows them.", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    Node.seamesh = options.seamesh
    print(f"{len(chosen)} cases, seed {options.seed}", flush=True)
    counts = run_cases(chosen, options.base, options.seed, options.jobs, options.long)
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    if counts["failed"]:
        print(f"again with the same choices: Tools/lan-lab --seed {options.seed}")
    return 1 if counts["failed"] else 0


def _options():
    parser = argparse.ArgumentParser()
    for name in ("--seamesh", "--base", "--only"):
        parser.add_argument(name, default="")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--jobs", type=int, default=_JOBS)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--list", action="store_true")
    return parser.parse_args()


def _is_chosen(case, options) -> bool:
    if options.only:
        return any(part in case.name for part in options.only.split(","))
    return not case.open and (options.long or not case.is_long)


def _line(case) -> str:
    return case.name + (" (long)" if case.is_long else "") + (f" (open: {case.open})" if case.open else "")


sys.exit(main())
