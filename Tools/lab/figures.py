"""Figures as they become known, each with what it is a measure of and the bar that it is held against."""

import json
import sys


class Figures:
    def __init__(self, is_json: bool):
        self._is_json, self.values, self._bars = is_json, {}, []

    def add(self, name: str, value: float, unit: str, basis: str, least: float | None = None, most: float | None = None):
        figure = {"value": round(value, 3), "unit": unit, "basis": basis}
        text = ""
        if least is not None or most is not None:
            holds = value >= least if most is None else value <= most
            self._bars.append((name, holds))
            figure |= {"bar": least if most is None else most, "holds": holds}
            text = f"; bar {'>=' if most is None else '<='} {figure['bar']:g}: {'holds' if holds else 'SHORT'}"
        self.values[name] = figure
        self.note(f"{name}: {value:,.{_places(value)}f} {unit}".rstrip() + f" ({basis}{text})")

    def note(self, text: str):
        """What happens meanwhile; a program that reads the figures is not to see it."""
        print(text, file=sys.stderr if self._is_json else sys.stdout, flush=True)

    def end(self, results: str):
        short = [name for name, holds in self._bars if not holds]
        if self._bars:
            self.note(f"{len(self._bars) - len(short)} of {len(self._bars)} bars hold" + (f"; short: {', '.join(short)}" if short else ""))
        text = json.dumps(self.values, indent=1)
        if self._is_json:
            print(text)
        if results:
            with open(results, "w") as file:
                file.write(text + "\n")


def _places(value: float) -> int:
    return 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 2
