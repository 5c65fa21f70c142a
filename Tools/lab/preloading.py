"""C libraries that change what one process sees of the system."""

import os
import shutil

from network import run
from runner import Bench
from waiting import Skip


def preloaded(bench: Bench, name: str, **settings: str) -> dict[str, str]:
    """What a process's environment needs for the library made of `name`.c, beside what that one reads."""
    library = f"{bench.network.directory}/{name}.so"
    if not os.path.exists(library):
        compiler = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
        if not compiler:
            raise Skip(f"no C compiler for {name}.c")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.c")
        run(compiler, "-shared", "-fPIC", "-O1", "-o", library, source)
    return {"LD_PRELOAD": library, **settings}
