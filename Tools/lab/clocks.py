"""Wall clocks that are wrong, each for one node."""

import os
import shutil

from network import run
from runner import Bench
from waiting import Skip

YEAR = 365 * 86_400


class JumpingClock:
    """A wall clock that is set while the node runs."""

    def __init__(self, bench: Bench, name: str):
        self._file = f"{bench.network.directory}/{name}.clock"
        self.set(0)
        self.environment = {"LD_PRELOAD": _library(bench), "LAB_CLOCK_FILE": self._file}

    def set(self, offset: int):
        """So many seconds off from now on."""
        with open(f"{self._file}.new", "w") as file:
            file.write(str(offset))
        os.replace(f"{self._file}.new", self._file)


def wrong_clock(bench: Bench, offset: int) -> dict[str, str]:
    """What a node's environment needs for a wall clock that is off by so many seconds."""
    return {"LD_PRELOAD": _library(bench), "LAB_CLOCK_OFFSET": str(offset)}


def _library(bench: Bench) -> str:
    library = f"{bench.network.directory}/clock.so"
    if not os.path.exists(library):
        compiler = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
        if not compiler:
            raise Skip("no C compiler to make a wrong clock with")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clock.c")
        run(compiler, "-shared", "-fPIC", "-O1", "-o", library, source)
    return library
