"""Shows that the simulator finds what it is meant to find; started by Tools/prove."""

import argparse
import contextlib
import os
import pathlib
import sys
import tempfile

import hunt
import ledger
import planting
import unittests

# A mistake that so many worlds do not show is a hole in the checkers or in the worlds.
_SEEDS = 400
_SECONDS = 300.0
_LEDGER_SEEDS = 20_000


def main() -> int:
    options = _options()
    table = planting.mistakes()
    if options.check:
        planting.planted(options.root, table)
        print(f"{len(table)} mistakes fit the sources")
        return 0
    chosen = [mistake for mistake in table if _is_chosen(mistake, options)]
    if options.list:
        print("\n".join(f"{mistake.name} ({mistake.room}): {mistake.sentence}" for mistake in chosen))
        return 0
    if not chosen:
        print("No mistake has such a name; --list shows them.", file=sys.stderr)
        return 2
    with contextlib.ExitStack() as stack:
        work = options.work or pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="seamesh-prove-")))
        if options.ledger:
            seamesh = options.seamesh or _build(options.root, work / "plain", [])
            seeds = options.seeds or _LEDGER_SEEDS
            return 1 if ledger.run(seamesh, options.first, seeds, options.jobs, options.root, _note) else 0
        # All of them, whatever was chosen: so that a build serves every choice.
        if options.tests:
            return _ask_tests(_plant(options.root, work / "planted", table), chosen)
        seamesh = options.seamesh or _build(options.root, work / "planted", table)
        return _hunt(seamesh, chosen, options)


def _is_chosen(mistake: planting.Mistake, options) -> bool:
    if options.only:
        return mistake.name in options.only.split(",")
    # Tests are asked about what no world has shown yet, too.
    return not mistake.harmless and (options.tests or mistake.is_open == options.open)


def _plant(root: pathlib.Path, place: pathlib.Path, table: list) -> pathlib.Path:
    planting.copy(root, place / "tree", planting.planted(root, table))
    return place


def _build(root: pathlib.Path, place: pathlib.Path, table: list) -> pathlib.Path:
    return planting.build(_plant(root, place, table) / "tree", place / "build")


def _ask_tests(place: pathlib.Path, chosen: list) -> int:
    (tree, scratch) = (place / "tree", place / "tests")
    unittests.build(tree, scratch)
    if failure := unittests.first_failure(tree, scratch, 0):
        _note(f"Without any mistake this test fails: {failure}")
        return 1
    print("| room | mistake | noticed by | seconds |\n|---|---|---|---|")
    missed = []
    for mistake in chosen:
        notice = unittests.ask(tree, scratch, mistake)
        missed += [] if notice.test else [mistake.name]
        found = notice.test or "**not noticed**"
        print(f"| {mistake.room} | {mistake.name}: {mistake.sentence} | {found} | {notice.seconds:.0f} |", flush=True)
    print(f"{len(chosen) - len(missed)} of {len(chosen)} noticed")
    if missed:
        print(f"not noticed: {', '.join(missed)}")
    return 1 if missed else 0


def _hunt(seamesh: pathlib.Path, chosen: list, options) -> int:
    limits = (options.first, options.seeds or _SEEDS, options.seconds)
    findings = hunt.hunt_all(seamesh, chosen, limits, options.jobs, lambda finding: _note(_line(finding)))
    print("| room | mistake | proposer | found by | seed | seeds | seconds |\n|---|---|---|---|---|---|---|")
    for finding in findings:
        mistake = finding.mistake
        who = mistake.proposer + (", history" if mistake.is_history else "")
        found = f"{finding.rule} | {finding.seed}" if finding.seed else "**not found** |"
        print(
            f"| {mistake.room} | {mistake.name}: {mistake.sentence} | {who} | {found}"
            f" | {finding.seeds} | {finding.seconds:.1f} |")
    missed = [finding.mistake.name for finding in findings if finding.seed is None]
    print(f"{len(findings) - len(missed)} of {len(findings)} found")
    if missed:
        print(f"not found: {', '.join(missed)}")
    return 1 if missed else 0


def _line(finding) -> str:
    where = f"seed {finding.seed}, {finding.what[:160]}" if finding.seed else "NOT FOUND"
    return f"{finding.mistake.name}: {where} ({finding.seeds} seeds, {finding.seconds:.1f} s)"


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _options():
    parser = argparse.ArgumentParser(prog="Tools/prove")
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--seeds", type=int, default=0)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=_SECONDS)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--work", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--seamesh", type=pathlib.Path)
    parser.add_argument("--open", action="store_true")
    parser.add_argument("--tests", action="store_true")
    parser.add_argument("--ledger", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--check", action="store_true")
    return parser.parse_args()


try:
    sys.exit(main())
except planting.NotPlanted as problem:
    sys.exit(f"The table of mistakes does not fit the sources.\n{problem}")
