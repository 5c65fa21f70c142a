"""Control groups in which a process may use little memory."""

import os
from contextlib import contextmanager

from waiting import Skip, wait_for

_ROOT = "/sys/fs/cgroup"


@contextmanager
def little_memory(name: str, byte_count: int):
    """Words to put before a command, which then may use so many bytes; a case is skipped where no such group can be made."""
    first = os.path.isdir(f"{_ROOT}/memory")
    group = f"{_ROOT}/memory/{name}" if first else f"{_ROOT}/{name}"
    try:
        os.mkdir(group)
    except OSError as error:
        raise Skip(f"no control group can be made: {error}") from error
    try:
        try:
            with open(f"{group}/{'memory.limit_in_bytes' if first else 'memory.max'}", "w") as limit:
                limit.write(str(byte_count))
        except OSError as error:
            raise Skip(f"no limit of memory can be set: {error}") from error
        yield ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', group]
    finally:
        # It is gone a moment after the last process in it.
        wait_for(10, f"{group} is removed", lambda: _is_removed(group))


def _is_removed(group: str) -> bool:
    try:
        os.rmdir(group)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
