"""Many seeds of the sources as they are, and the book of them."""

import collections
import concurrent.futures
import subprocess
import time

import worlds

_CHUNK = 100


def run(seamesh, first: int, seeds: int, jobs: int, root, note) -> int:
    """Prints the ledger as Markdown. Answers how many worlds failed."""
    start = time.monotonic()
    (totals, failures, done) = (collections.Counter(), [], 0)
    chunks = [(at, min(_CHUNK, first + seeds - at)) for at in range(first, first + seeds, _CHUNK)]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for (at, count), outcome in zip(chunks, pool.map(lambda chunk: _chunk(seamesh, *chunk), chunks)):
            totals.update({"events": outcome.events, "changes": outcome.changes}, **outcome.counts)
            found = list(outcome.failures)
            if outcome.crash:
                found.append((at, f"{outcome.crash} (somewhere in --count {count})"))
            for seed, what in found:
                note(_said(seed, what))
            failures += found
            done += count
            note(f"{done} of {seeds} worlds, {len(failures)} failed, {time.monotonic() - start:.0f} s")
    _print(first, seeds, totals, failures, time.monotonic() - start, _commit(root))
    return len(failures)


def _chunk(seamesh, first: int, count: int):
    return worlds.run(seamesh, first, count, 0, "--counts")


def _commit(root) -> str:
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True).stdout.strip()

    changed = " with changes" if git("status", "--porcelain", "Sources", "Package.swift") else ""
    return git("rev-parse", "--short=10", "HEAD") + changed


def _print(first: int, seeds: int, totals, failures: list, seconds: float, commit: str) -> None:
    print(f"Commit {commit}, seeds {first} to {first + seeds - 1}, {seconds:.0f} s.\n")
    print("| what | count |\n|---|---|")
    print(f"| worlds | {seeds} |\n| worlds that failed | {len(failures)} |")
    for name, count in totals.items():
        print(f"| {name} | {count} |")
    for seed, what in failures:
        print(f"\n{_said(seed, what)}")


def _said(seed: int, what: str) -> str:
    return f"`seamesh simulate --seed {seed}`: {what}"
