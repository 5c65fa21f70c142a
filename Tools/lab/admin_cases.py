"""Admins who come and go, and the root key, which alone decides about them."""

import os

from fleets import await_meeting
from joining import expect_refused
from node import Node
from rights import add_member, await_level, await_shown, fleet, found_fleet, shown, sign, split, write, write_all
from runner import Bench, case
from terminal import Terminal
from waiting import expect, wait_for


@case("rights: the last admin and one's own device are ended only on purpose, and only where the root key lies")
def last_admin(bench: Bench):
    a, b = nodes = fleet(bench, "ab")
    expect(write(a, "one") in (200, 201), "a may not write")
    await_shown(nodes, {"one"})
    shown_first = a.verb("revoke", "a", "--dry-run").stdout
    for words in ("last admin", "on which it is asked for"):
        expect(words in shown_first, f"a dry run does not say {words!r}: {shown_first}")
    expect_refused(a.verb("revoke", "a", check=False), 1, "nothing was signed")
    key = f"{a.directory}/fleet-root.key"
    os.rename(key, f"{a.directory}.stick")
    expect_refused(a.verb("revoke", "a", "--yes", check=False), 4, "root key")
    expect_refused(a.verb("promote", "b", "--yes", check=False), 4, "root key")
    os.rename(f"{a.directory}.stick", key)
    terminal = Terminal(a, "revoke", "a")
    terminal.await_text("Sign this")
    expect("last admin" in terminal.shown, f"the question does not say it: {terminal.shown}")
    terminal.type("yes\n")
    expect(terminal.await_end() == 0, f"a yes ended with {terminal.shown}")
    expect("device-ended" in a.findings(), f"the doctor says {sorted(a.findings())}")
    expect(write(a, "two") == 403, "an ended device writes")
    await_level([b], "a", "none")
    await_shown(nodes, {"one"})
    # The root key makes another admin.
    a.verb("promote", "b", "--yes")
    wait_for(30, "b is an admin", lambda: b.verb("invite", "--user", "c@lab.example", check=False).returncode == 0, 0.3)


@case("rights: a root key of another fleet, one with a wrong letter and one that others may read sign nothing")
def wrong_root_key(bench: Bench):
    a, b = fleet(bench, "ab")
    for _ in _wrong_keys(bench, a):
        for words in (["promote", "b"], ["revoke", "a"]):
            expect_refused(a.verb(*words, "--yes", check=False), 4, "root key")
        expect_refused(a.verb("invite", "--user", "c@lab.example", "--role", "admin", check=False), 4, "root key")
    sign(a, "promote", "b")


@case("rights: a root key that cannot be used is named with what is wrong with it, not as missing")
def wrong_root_key_is_named(bench: Bench):
    a, b = fleet(bench, "ab")
    said = [a.verb("promote", "b", "--yes", check=False).stderr for _ in _wrong_keys(bench, a)]
    for text in said:
        expect("is not in this data directory" not in text, f"the key is there, and it says: {text}")


def _wrong_keys(bench: Bench, node: Node):
    """Puts them in place one after the other, and the right one back at the end."""
    path = f"{node.directory}/fleet-root.key"
    with open(path) as file:
        right = file.read()
    other = Node(bench.network.host("other"))
    other.init()
    with open(f"{other.directory}/fleet-root.key") as file:
        foreign = file.read()
    seed = right.split("seed: ")[1]
    wrong = right.replace(seed[:8], ("0" if seed[0] != "0" else "1") + seed[1:8])
    for text, mode in ((foreign, 0o600), (wrong, 0o600), (right, 0o644)):
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)
        yield text
    os.chmod(path, 0o600)


@case("two admins who end one another while they are apart are both out, everywhere the same")
def two_admins(bench: Bench):
    a = found_fleet(bench.network, "a")
    b, c = (add_member(bench.network, name, a, "room=*", role="admin") for name in "bc")
    d = add_member(bench.network, "d", a, "room=*")
    a.subscribe("room=*")
    nodes = [a, b, c, d]
    await_meeting(nodes)
    write_all(b, "of-b")
    write_all(c, "of-c")
    await_shown(nodes, {"of-b", "of-c"})
    split(bench, [a, b], [c, d])
    sign(b, "revoke", "c")
    sign(c, "revoke", "b")
    expect(write(b, "b-alone") in (200, 201) and write(c, "c-alone") in (200, 201), "one is out before it has heard")
    bench.network.heal()
    for label in "bc":
        await_level([a, d], label, "none", seconds=75)
    for node in (b, c):
        wait_for(30, f"{node.name} knows that it was ended", lambda: "device-ended" in node.findings(), 0.3)
        expect(write(node, "after") == 403, f"{node.name} writes")
        expect_refused(node.verb("grant", "everyone", "read", "x=1", check=False), 4)
    wait_for(30, "a and d agree", lambda: a.digests() == d.digests(), 0.3)
    known = sorted(shown(a) - {"of-b", "of-c"})
    expect(known == [], f"{known} counts though nobody had it when its author was ended")


@case("what an admin granted before he heard of his end is given back by a raise, where the root key lies")
def root_settles(bench: Bench):
    a = found_fleet(bench.network, "a", "--closed")
    b = add_member(bench.network, "b", a, "room=*", role="admin")
    d = add_member(bench.network, "d", a, "room=*")
    await_meeting([a, b, d])
    split(bench, [a], [b, d])
    sign(a, "revoke", "b")
    sign(b, "grant", "device:d", "write", "room=*")
    await_level([d], "d", "write")
    bench.network.heal()
    await_level([d], "d", "none", seconds=75)
    expect(write(d, "early") == 403, "d writes by the word of an admin who was ended")
    sign(a, "raise", "b")
    await_level([a, d], "d", "write")
    expect(write(d, "one") in (200, 201), "d may not write")
