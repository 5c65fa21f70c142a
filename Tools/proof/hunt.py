"""Looks for the first world in which a mistake shows."""

import concurrent.futures
import dataclasses
import time

import worlds
from planting import Mistake

# Few, so that little is run beyond the one that shows it.
_CHUNK = 4


@dataclasses.dataclass
class Finding:
    mistake: Mistake
    #: Nil where nothing was found.
    seed: int | None
    rule: str
    what: str
    seeds: int
    seconds: float


def hunt_all(seamesh, mistakes: list[Mistake], limits, jobs: int, each) -> list[Finding]:
    # Where the node stops without any mistake, every hunt would end with nothing found.
    sound = worlds.run(seamesh, limits[0], 1)
    if sound.crash:
        raise SystemExit(f"The node without any mistake does not get through world {limits[0]}: {sound.crash}.")
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        hunts = [pool.submit(hunt, seamesh, mistake, *limits) for mistake in mistakes]
        for done in concurrent.futures.as_completed(hunts):
            each(done.result())
        return [hunt.result() for hunt in hunts]


def hunt(seamesh, mistake: Mistake, start_seed: int, seeds: int, seconds: float) -> Finding:
    start = time.monotonic()
    # Elsewhere few worlds forward, and few have more nodes than links.
    options = ("--relays",) if mistake.relays else ("--harbour",) if mistake.harbour else ()
    tried = 0
    for chunk in _chunks(mistake.seeds, start_seed, seeds):
        if tried >= len(mistake.seeds) and time.monotonic() - start >= seconds:
            break
        for seed, what in _failures(seamesh, mistake.number, chunk[0], len(chunk), options):
            # What breaks without the mistake, too, says nothing of it.
            if _failures(seamesh, 0, seed, 1, options):
                continue
            rule = what.split(" at ")[0].split(": ")[0]
            return Finding(mistake, seed, rule, what, tried + 1 + chunk.index(seed), time.monotonic() - start)
        tried += len(chunk)
    return Finding(mistake, None, "", "", tried, time.monotonic() - start)


def _chunks(known: list[int], start_seed: int, seeds: int):
    """Ranges of seeds: those that are known to show it alone, then all in their order."""
    yield from (range(seed, seed + 1) for seed in known)
    end = start_seed + seeds
    yield from (range(first, min(first + _CHUNK, end)) for first in range(start_seed, end, _CHUNK))


def _failures(seamesh, mistake: int, first: int, count: int, options: tuple) -> list:
    outcome = worlds.run(seamesh, first, count, mistake, *options)
    if not outcome.crash:
        return outcome.failures
    if count == 1:
        return [(first, outcome.crash)]
    # Which of them it was that stopped the process, each alone tells.
    return [failure for seed in range(first, first + count) for failure in _failures(seamesh, mistake, seed, 1, options)]
