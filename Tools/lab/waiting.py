"""Waiting for conditions, and the ways in which a case ends other than well."""

import time


class Failed(Exception):
    """What should have been so was not."""


class Skip(Exception):
    """The case cannot be tried here."""


def wait_for(seconds: float, what, condition, interval: float = 0.1):
    """Tries `condition` until it answers something true, and answers that. `what`: a text, or what makes one at the end."""
    deadline = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise Failed(f"not within {seconds:g} s: {what() if callable(what) else what}")
        time.sleep(interval)


def expect(condition, what: str):
    if not condition:
        raise Failed(what)
