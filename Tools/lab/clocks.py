"""Wall clocks that are wrong, each for one node."""

import os

from preloading import preloaded
from runner import Bench

YEAR = 365 * 86_400


class JumpingClock:
    """A wall clock that is set while the node runs."""

    def __init__(self, bench: Bench, name: str):
        self._file = f"{bench.network.directory}/{name}.clock"
        self.set(0)
        self.environment = preloaded(bench, "clock", LAB_CLOCK_FILE=self._file)

    def set(self, offset: int):
        """So many seconds off from now on."""
        with open(f"{self._file}.new", "w") as file:
            file.write(str(offset))
        os.replace(f"{self._file}.new", self._file)


def wrong_clock(bench: Bench, offset: int) -> dict[str, str]:
    """What a node's environment needs for a wall clock that is off by so many seconds."""
    return preloaded(bench, "clock", LAB_CLOCK_OFFSET=str(offset))
