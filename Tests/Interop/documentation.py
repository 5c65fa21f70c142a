"""The examples of Docs/PROTOCOL.md: fenced blocks whose info string is `golden NAME`. Text after `#` explains."""

import pathlib
import re

PATH = pathlib.Path(__file__).resolve().parents[2] / "Docs" / "PROTOCOL.md"


def golden() -> dict[str, bytes]:
    blocks = re.findall(r"```golden (\S+)\n(.*?)```", PATH.read_text(), re.S)
    return {name: bytes.fromhex("".join(re.sub(r"#.*", "", text).split())) for name, text in blocks}
