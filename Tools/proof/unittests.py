"""Looks for the first unit or node test that notices a mistake, without any simulated world."""

import dataclasses
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

from planting import VARIABLE, Mistake

# Near the core first, since what notices most costs least. The simulator's own tests run worlds, and are left out.
_CORE = "ReplicationTests|WireTests"
_ENGINE = "EngineTests|StorageTests|IdentityTests"
_NODE = "SeameshTests|TransportTests|LocalAPITests|LibraryTests|SeameshCommandTests"
_SHORE = "ForwardingTests"
_STAGES = (_CORE, _ENGINE, _NODE, _SHORE)
# Where a mistake of these rooms is noticed oftenest; the other stages follow.
_FIRST = {"Engine": _ENGINE, "Storage": _ENGINE, "Forwarding": _SHORE}
# A mistake that keeps the tests from coming to an end is noticed, too.
_SECONDS_OF_STAGE = 600.0
_PASSED = "✔ Test "
_FAILED = re.compile(r'✘ Test (?:"(?P<quoted>[^"]*)"|(?P<name>\S+)) ')


@dataclasses.dataclass
class Notice:
    mistake: Mistake
    #: Empty where all tests passed.
    test: str
    seconds: float


def build(tree: pathlib.Path, scratch: pathlib.Path) -> None:
    subprocess.run(["swift", "build", "--build-tests", "--scratch-path", str(scratch)], cwd=tree, check=True)


def ask(tree: pathlib.Path, scratch: pathlib.Path, mistake: Mistake) -> Notice:
    start = time.monotonic()
    failure = first_failure(tree, scratch, mistake.number, _FIRST.get(mistake.room, _CORE))
    return Notice(mistake, failure, time.monotonic() - start)


def first_failure(tree: pathlib.Path, scratch: pathlib.Path, number: int, first: str = _CORE) -> str:
    """By the number of the mistake; 0 for none. Empty where all tests pass."""
    stages = (first, *(stage for stage in _STAGES if stage != first))
    return next(filter(None, (_failure_in(stage, tree, scratch, number) for stage in stages)), "")


def _failure_in(stage: str, tree: pathlib.Path, scratch: pathlib.Path, number: int) -> str:
    command = ["swift", "test", "--skip-build", "--no-parallel", "--scratch-path", str(scratch)]
    process = subprocess.Popen(
        [*command, "--filter", f"^({stage})\\."], cwd=tree, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", env=os.environ | {VARIABLE: str(number)}, start_new_session=True,
    )
    overdue = threading.Timer(_SECONDS_OF_STAGE, _kill, [process])
    overdue.start()
    passed = 0
    try:
        for line in process.stdout:
            passed += _PASSED in line
            if failed := _FAILED.search(line):
                return failed["quoted"] or failed["name"]
        if process.wait() != 0:
            return "(no end)" if not overdue.is_alive() else f"(the tests ended with {process.returncode})"
    finally:
        overdue.cancel()
        _kill(process)
    if passed == 0:
        raise RuntimeError(f"no test ran for {stage}")
    return ""


def _kill(process: subprocess.Popen) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
