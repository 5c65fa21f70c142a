"""Measures forwarding to a backend, and what it costs over a link; started by Tools/measure-forwarding."""

import argparse
import os
import shutil
import signal
import sys
import tempfile

from backlog_figures import measure_backlog
from figures import Figures
from link_figures import measure_latency, measure_link
from machine import Machine, free_port
from node import Node
from postgres import Server
from waiting import Failed, Skip

_PARTS = ("backlog", "latency", "link")
_NOT_RUN = 77


def main() -> int:
    options = _options()
    chosen = options.only.split(",") if options.only else _PARTS
    if unknown := [part for part in chosen if part not in _PARTS]:
        print(f"There is no part {unknown[0]}: {', '.join(_PARTS)}.", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    Node.seamesh, Node.log_level = options.seamesh, "notice"
    base = tempfile.mkdtemp(prefix="seamesh-fwd.", dir=os.environ.get("TMPDIR", "/var/tmp"))
    machine, figures = Machine(base), Figures(options.json)
    try:
        # As Debian sets it up: what is committed is on the disk.
        server = Server(machine, "127.0.0.1", free_port(), "")
        if "backlog" in chosen:
            measure_backlog(machine, server, options.changes, options.pairs, figures)
        if "latency" in chosen:
            measure_latency(machine, server, figures)
        if "link" in chosen:
            measure_link(machine, server, options.reports, options.rest, options.alone, figures)
    except Skip as reason:
        print(f"not run: {reason}")
        return _NOT_RUN
    except Failed as problem:
        print(f"failed: {problem}", file=sys.stderr)
        return 1
    finally:
        machine.close()
        if options.keep:
            figures.note(f"The directories are in {base}.")
        else:
            shutil.rmtree(base, ignore_errors=True)
    figures.end(options.results)
    return 0


def _options():
    parser = argparse.ArgumentParser()
    for name in ("--seamesh", "--only", "--results"):
        parser.add_argument(name, default="")
    parser.add_argument("--changes", type=_number, default=1_000_000)
    parser.add_argument("--pairs", type=_number, default=3)
    parser.add_argument("--reports", type=_number, default=20)
    parser.add_argument("--rest", type=_number, default=60)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--alone", action="store_true", help="nobody else uses this loopback")
    return parser.parse_args()


def _number(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


sys.exit(main())
