"""A verb as a person runs it: on a terminal."""

import os
import pty
import re
import select
import subprocess

from node import Node
from waiting import wait_for

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """Keeps all that was shown, each state of a line that is drawn anew as a line of its own."""

    def __init__(self, node: Node, *words: str):
        self._master, slave = pty.openpty()
        self._process = subprocess.Popen(
            node.words(*words), stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            env={**node.host.environment, **node.environment, "TERM": "xterm"})  # fmt: skip
        node.begun.append(self._process)
        os.close(slave)
        self._name, self._raw = f"{words[0]} on {node.name}", b""

    def await_text(self, pattern: str, seconds: float = 30) -> re.Match:
        """The first place where the pattern stands."""
        return wait_for(seconds, lambda: f"{self._name} shows {pattern}; it shows {self.shown!r}",
                        lambda: self._read() and re.search(pattern, self.shown), 0)  # fmt: skip

    def type(self, text: str):
        os.write(self._master, text.encode())

    def await_end(self, seconds: float = 60) -> int:
        wait_for(seconds, lambda: f"{self._name} ends; it shows {self.shown!r}",
                 lambda: self._read() and self._process.poll() is not None, 0)  # fmt: skip
        while self._is_readable(0) and self._take():
            pass
        os.close(self._master)
        return self._process.returncode

    @property
    def shown(self) -> str:
        lines = _CONTROL.sub("\n", self._raw.decode(errors="replace")).replace("\r", "\n").splitlines()
        return "\n".join(line for line, before in zip(lines, [""] + lines) if line and line != before)

    def _read(self) -> bool:
        """Takes what comes within a tenth of a second."""
        if self._is_readable(0.1):
            self._take()
        return True

    def _is_readable(self, seconds: float) -> bool:
        return bool(select.select([self._master], [], [], seconds)[0])

    def _take(self) -> bool:
        try:
            chunk = os.read(self._master, 65_536)
        except OSError:
            # The verb has ended, and nobody holds the other end any more.
            return False
        self._raw += chunk
        return bool(chunk)
