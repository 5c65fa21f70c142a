"""A copy of the sources with every known mistake in it, each behind a number that the environment chooses."""

import dataclasses
import pathlib
import subprocess
import tomllib

VARIABLE = "SEAMESH_PLANTED"
_TABLE = pathlib.Path(__file__).with_name("mistakes.toml")
_PLACEHOLDER = "PLANTED"
# What the package needs to be described, built and tested: the examples of the documents are tests.
_PARTS = ("Package.swift", "Sources", "Tests", "Docs")
# Read once: a world asks at every step.
_SWITCH = f"""import Glibc

private let chosen = getenv("{VARIABLE}").flatMap {{ Int(String(cString: $0)) }} ?? 0

/// Does this process have the mistake of this number?
@inline(__always) package func planted(_ number: Int) -> Bool {{ chosen == number }}
"""


@dataclasses.dataclass
class Mistake:
    number: int
    name: str
    room: str
    sentence: str
    proposer: str
    is_history: bool
    #: The simulator has not found it yet.
    is_open: bool
    #: Why no world can show it: then it is neither hunted nor counted. Empty where one can.
    harmless: str
    #: Worlds that showed it and are rare: they are tried first.
    seeds: list
    #: Every world of its hunt has relays.
    relays: bool
    #: Every world of its hunt is a harbour.
    harbour: bool
    sites: list


class NotPlanted(Exception):
    """The table does not fit the sources."""


def mistakes() -> list[Mistake]:
    with open(_TABLE, "rb") as file:
        entries = tomllib.load(file)["mistake"]
    return [
        Mistake(
            number, entry["name"], entry["room"], entry["sentence"], entry["proposer"],
            entry.get("history", False), entry.get("open", False), entry.get("harmless", ""),
            entry.get("seeds", []), entry.get("relays", entry["room"] == "Forwarding"),
            entry.get("harbour", entry["room"] == "Overlay"), entry["site"],
        )
        for number, entry in enumerate(entries, start=1)
    ]


def copy(root: pathlib.Path, tree: pathlib.Path, changed: dict[str, str]) -> None:
    """Only files that differ are written, so that a build in the same place begins where the last one ended."""
    wanted = {file.relative_to(root) for part in _PARTS for file in [root / part, *(root / part).rglob("*")]}
    for file in sorted(wanted | {pathlib.Path(path) for path in changed}):
        if (root / file).is_dir():
            (tree / file).mkdir(parents=True, exist_ok=True)
        else:
            _write(tree / file, changed[str(file)].encode() if str(file) in changed else (root / file).read_bytes())
    for file in [file for part in _PARTS for file in (tree / part).rglob("*") if file.is_file()]:
        if file.relative_to(tree) not in wanted and str(file.relative_to(tree)) not in changed:
            file.unlink()


def _write(path: pathlib.Path, content: bytes) -> None:
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def planted(root: pathlib.Path, planting: list[Mistake]) -> dict[str, str]:
    """The files that have mistakes in them. Where the table does not fit, all of it is said at once."""
    texts: dict[str, str] = {}
    problems = []
    for mistake in planting:
        for site in mistake.sites:
            path = site["file"]
            text = texts.setdefault(path, (root / path).read_text())
            if text.count(site["original"]) != 1:
                problems.append(f"{mistake.name}: {path} has {text.count(site['original'])} times {site['original']!r}")
                continue
            if _PLACEHOLDER not in site["planted"]:
                problems.append(f"{mistake.name}: the text for {path} does not ask whether it is planted")
            text_of_site = site["planted"].replace(_PLACEHOLDER, f"planted({mistake.number})")
            texts[path] = text.replace(site["original"], text_of_site)
    if problems:
        raise NotPlanted("\n".join(problems))
    for path, text in texts.items():
        if "/Replication/" not in path and "\nimport Replication\n" not in "\n" + text:
            texts[path] = "import Replication\n" + text
    if texts:
        texts["Sources/Replication/Planted.swift"] = _SWITCH
    return texts


def build(tree: pathlib.Path, scratch: pathlib.Path) -> pathlib.Path:
    """A release; answers where the command lies."""
    command = ["swift", "build", "-c", "release", "--product", "seamesh", "--scratch-path", str(scratch)]
    subprocess.run(command, cwd=tree, check=True)
    place = subprocess.run(command + ["--show-bin-path"], cwd=tree, check=True, capture_output=True, text=True)
    return pathlib.Path(place.stdout.strip()) / "seamesh"
