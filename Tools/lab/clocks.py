"""Wall clocks that are wrong, each for one node."""

import os
import shutil

from network import run
from runner import Bench
from waiting import Skip

YEAR = 365 * 86_400


def wrong_clock(bench: Bench, offset: int) -> dict[str, str]:
    """What a node's environment needs for a wall clock that is off by so many seconds."""
    library = f"{bench.network.directory}/clock.so"
    if not os.path.exists(library):
        compiler = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
        if not compiler:
            raise Skip("no C compiler to make a wrong clock with")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clock.c")
        run(compiler, "-shared", "-fPIC", "-O1", "-o", library, source)
    return {"LD_PRELOAD": library, "LAB_CLOCK_OFFSET": str(offset)}
