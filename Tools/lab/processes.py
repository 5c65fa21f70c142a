"""Processes that the laboratory starts, and ends by their ids alone."""

import os
import signal
import subprocess


class Process:
    """Writes to files, which outlive it and go on when it is started again."""

    def __init__(self, words: list[str], environment: dict[str, str], output: str, log: str):
        with open(output, "ab") as out, open(log, "ab") as errors:
            self._process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=out, stderr=errors, env=environment, start_new_session=True)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def status(self):
        return self._process.poll()

    def signal(self, number: int):
        if self.is_running:
            os.kill(self.pid, number)

    def kill(self):
        self.signal(signal.SIGKILL)
        self._process.wait()

    def wait(self):
        self._process.wait()

    def stop(self, seconds: float = 15) -> int:
        """Asks it to end, and answers its exit status."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return self._process.returncode
