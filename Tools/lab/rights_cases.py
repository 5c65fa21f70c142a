"""What admins say about rights, and what comes of it on devices that are there, and on those that were away."""

from fleets import await_meeting
from joining import expect_refused
from node import Node
from rights import (
    OTHER, ROOM, add_member, await_level, await_shown, expect_shows_nothing, fleet, held, kept, level, next_moment, preview,
    sign, split, statements, write, write_all,
)  # fmt: skip
from runner import Bench, case
from terminal import Terminal
from waiting import expect, wait_for


@case("rights: a grant that was lowered while a device was away: what it wrote before stays, what it wrote since is held")
def lowered_while_away(bench: Bench):
    a, b, c = nodes = fleet(bench, "abc", "--closed")
    sign(a, "grant", "device:b", "write", "room=*")
    sign(a, "grant", "device:c", "read", "room=*")
    await_level([b], "b", "write")
    expect(write(b, "before") in (200, 201), "b may not write what was granted")
    await_shown(nodes, {"before"}, seconds=60)
    split(bench, [b], [a, c])
    sign(a, "grant", "device:b", "read", "room=*")
    expect(write(b, "meanwhile") in (200, 201), "b, which has not heard of it, may not write any more")
    bench.network.heal()
    await_level([b, c], "b", "read", seconds=60)
    expect(write(b, "after") == 403, "b writes under a lowered grant")
    await_shown(nodes, {"before"})
    expect(held(b) == 1, f"b holds {held(b)} changes of its own, not 1")
    expect(b.ask("/v1/status")["held"], f"status does not tell of it: {b.ask('/v1/status')}")
    # It is still so after a restart, and what is allowed again comes back.
    b.kill()
    b.start()
    await_shown([b], {"before"})
    sign(a, "grant", "device:b", "write", "room=*")
    await_shown(nodes, {"before", "meanwhile"}, seconds=60)
    expect(write(b, "again") in (200, 201), "b may not write what was granted again")
    await_shown(nodes, {"before", "meanwhile", "again"})


@case("rights: a grant lowered by an admin who carries nothing keeps what others hold")
def lowered_uncarried(bench: Bench):
    a, b, c = fleet(bench, "abc", wanted={"a": "nothing=1"})
    sign(a, "grant", "everyone", "read", "*")
    sign(a, "grant", "device:b", "write", "room=*")
    await_level([b, c], "b", "write")
    write_all(b, "one")
    await_shown([b, c], {"one"})
    sign(a, "grant", "device:b", "read", "room=*")
    await_level([b, c], "b", "read")
    await_shown([b, c], {"one"})
    expect(write(b, "two") == 403, "b writes under a lowered grant")


@case("rights: who may read only reads, who may carry only carries, and who loses it gets nothing more")
def levels(bench: Bench):
    a, b, c = nodes = fleet(bench, "abc", "--closed")
    expect(write(a, "one") in (200, 201), "the founder may not write")
    sign(a, "grant", "device:b", "read", "room=*")
    sign(a, "grant", "device:c", "carry", "room=*")
    await_shown([b], {"one"}, seconds=60)
    wait_for(60, "c carries it", lambda: c.changes(ROOM) == 1, 0.2)
    for node in (b, c):
        expect(write(node, "two") == 403, f"{node.name} writes")
    sign(a, "grant", "device:b", "none", "room=*")
    await_level(nodes, "b", "none")
    expect(write(a, "later") in (200, 201), "the founder may not write")
    wait_for(30, "c carries that, too", lambda: c.changes(ROOM) == 2, 0.2)
    expect(b.changes(ROOM) == 1, "b was sent what it may not hold any more")


@case("rights: a device that may only carry shows nobody what it carries, and passes it on")
def carrier_shows_nothing(bench: Bench):
    bench.network.add_bridge("lan1")
    a, c = nodes = fleet(bench, "ac", "--closed")
    b = add_member(bench.network, "b", a, "room=*")
    await_meeting([*nodes, b])
    # From now on b has c alone.
    for node in (b, c):
        node.host.plug("lan1")
        node.stop()
    b.host.link("down")
    for node in (b, c):
        node.start()
    expect(write(a, "one") in (200, 201), "the founder may not write")
    sign(a, "grant", "device:b", "write", "room=*")
    sign(a, "grant", "device:c", "carry", "room=*")
    await_shown([b], {"one"}, seconds=60)
    expect(c.changes(ROOM) == 1 and kept(c) == {"one"}, "c has not carried it")
    expect_shows_nothing(c, why="may only carry")
    expect(write(b, "two") in (200, 201), "b may not write what was granted")
    await_shown([a], {"one", "two"})
    expect_shows_nothing(c, why="may only carry")
    # What it may read later it shows, without anything being started anew, and no longer when that has gone.
    for granted, shows in (("read", True), ("carry", False), ("write", True), ("none", False)):
        sign(a, "grant", "device:c", granted, "room=*")
        await_level([c], "c", granted)
        if shows:
            await_shown([c], {"one", "two"})
        else:
            expect_shows_nothing(c)


@case("rights: --dry-run signs nothing and names the very numbers of what is signed then")
def dry_run(bench: Bench):
    a, b, c = nodes = fleet(bench, "abc")
    b.put_many(ROOM, "first", 2)
    wait_for(30, "a has the first ones", lambda: a.changes(ROOM) == 2, 0.2)
    at = next_moment()
    b.put_many(ROOM, "second", 4)
    b.put_many(OTHER, "second", 3)
    wait_for(30, "all is everywhere", lambda: all(n.changes(ROOM) == 6 and n.changes(OTHER) == 3 for n in nodes), 0.2)
    for words in (["grant", "device:b", "write", ROOM], ["grant", "device:b", "read", ROOM], ["grant", "everyone", "none", "*"],
                  ["grant", "everyone", "write", "*"], ["revoke", "b", "--compromised", "--at", at], ["raise", "b"],
                  ["retire", "c"]):  # fmt: skip
        before = statements(a), a.digests()
        foreseen = preview(a, *words)
        expect(not foreseen["signed"], f"a dry run signed: {foreseen}")
        expect((statements(a), a.digests()) == before, f"a dry run of {words} changed something")
        counts = _counts(a)
        done = sign(a, *words)
        expect(done["signed"], f"nothing was signed: {done}")
        for part in ("falls", "notCarried", "says", "narrowing", "warnings", "notes"):
            expect(foreseen[part] == done[part], f"{words}: {part} foreseen as {foreseen[part]}, done {done[part]}")
        fallen = {fall["partition"]: fall["lostChanges"] - fall["gainedChanges"] for fall in done["falls"]}
        wanted = {name: counts[name] - fallen.get(name, 0) for name in counts}
        wait_for(10, lambda: f"after {words} a shows {wanted}; it shows {_counts(a)}", lambda: _counts(a) == wanted)
        bench.note(f"{' '.join(words[:4])}: {sum(fallen.values())}")
    wait_for(30, "all agree", lambda: a.digests() == b.digests() == c.digests(), 0.3)


def _counts(node: Node) -> dict[str, int]:
    """Changes that count, which is documents here: each was written once."""
    return {name: row["documents"] for name, row in node.partitions(digests=False).items()}


@case("rights: a pattern that is none, a name that is nobody's and a level that is none are refused, and nothing is signed")
def malformed(bench: Bench):
    (a,) = fleet(bench, "a")
    before = statements(a)
    for pattern in ("a*b", "**", "*a", "x" * 256, "room=\x01"):
        expect_refused(a.verb("grant", "everyone", "read", pattern, "--yes", check=False), 2, "no pattern")
    for who in ("nobody", "user:", "role:", "device:", ":x", "group:x"):
        expect_refused(a.verb("grant", who, "read", ROOM, "--yes", check=False), 2, "names nobody")
        expect_refused(a.verb("permissions", f"--who={who}", check=False), 2, "names nobody")
    expect_refused(a.verb("grant", "device:zz", "read", ROOM, "--yes", check=False), 3, "no device zz")
    expect_refused(a.verb("grant", "everyone", "read", "", "--yes", check=False), 2, "PATTERN is empty")
    expect(a.verb("grant", "everyone", "own", ROOM, "--yes", check=False).returncode == 2, "a level that is none")
    for verb in ("revoke", "retire", "raise", "promote"):
        expect_refused(a.verb(verb, "zz", "--yes", check=False), 3, "no device zz")
    expect_refused(a.verb("revoke", "a", "--at", "yesterday", "--yes", check=False), 2, "yesterday is no time")
    expect_refused(a.verb("revoke", "a", "--at", "2999-01-01T00:00:00Z", "--yes", check=False), 2, "future")
    expect(statements(a) == before and level(a, "a") == "write", "something was signed")


@case("rights: a grant to a user whom nobody knows yet is said to be one, and holds when that user comes")
def unknown_user(bench: Bench):
    (a,) = fleet(bench, "a", "--closed")
    for words in (["user:b@lab.example", "write", ROOM], ["role:nurse", "read", OTHER]):
        said = a.verb("grant", *words).stdout
        expect("signed" in said and f"no device of {words[0]} is known yet" in said, f"it says {said}")
    b = add_member(bench.network, "b", a, "room=*", role="nurse")
    await_meeting([a, b])
    expect(write(b, "one") in (200, 201), "what was granted before does not hold")
    await_shown([a, b], {"one"})
    expect(level(b, "b", OTHER) == "read" and write(b, "two", OTHER) == 403, "the role has another right")


@case("rights: members who are no admins sign nothing, and who manages grants within the pattern alone")
def managers(bench: Bench):
    a, b, c = nodes = fleet(bench, "abc", "--closed")
    for words in (["grant", "device:c", "write", ROOM], ["revoke", "c"], ["retire", "c"], ["promote", "b"], ["revoke", "a"]):
        expect_refused(b.verb(*words, "--yes", check=False), 4)
    sign(a, "grant", "device:b", "manage", "room=*")
    await_level(nodes, "b", "manage")
    sign(b, "grant", "device:c", "write", ROOM)
    await_level(nodes, "c", "write")
    expect(write(c, "one") in (200, 201), "a manager's grant does not hold")
    for words in (["grant", "device:c", "manage", ROOM], ["grant", "device:c", "write", "boat=1"], ["revoke", "c"],
                  ["grant", "device:c", "write", "*"]):  # fmt: skip
        expect_refused(b.verb(*words, "--yes", check=False), 4)
    # What a manager gave stays when he manages no more, up to where it was.
    sign(a, "grant", "device:b", "none", "room=*")
    await_level(nodes, "b", "none")
    expect_refused(b.verb("grant", "device:c", "read", OTHER, "--yes", check=False), 4)
    await_shown([a, c], {"one"})


@case("rights: what takes something away is asked for on a terminal, and signed elsewhere with --yes only")
def asked(bench: Bench):
    a, b = nodes = fleet(bench, "ab")
    expect(write(b, "one") in (200, 201), "b may not write")
    await_shown(nodes, {"one"})
    before = statements(a)
    for words in (["grant", "everyone", "none", "*"], ["revoke", "b"], ["retire", "b"]):
        expect_refused(a.verb(*words, check=False), 1, "nothing was signed", "--yes", "--dry-run")
        terminal = Terminal(a, *words)
        terminal.await_text("Sign this")
        terminal.type("n\n")
        status = terminal.await_end()
        expect(status == 1 and "nothing was signed" in terminal.shown, f"a no ended with {status}: {terminal.shown}")
    expect(statements(a) == before and level(a, "b") == "write", "something was signed")
    terminal = Terminal(a, "grant", "everyone", "none", "*")
    terminal.await_text("Sign this")
    terminal.type("y\n")
    expect(terminal.await_end() == 0 and "signed the end of" in terminal.shown, f"a yes ended with {terminal.shown}")
    await_level(nodes, "b", "none")
    expect(write(b, "two") == 403, "b writes in a closed fleet")


@case("rights: lowering a grant takes something away, and is asked for even where the node carries nothing")
def lowering_is_asked(bench: Bench):
    (a,) = fleet(bench, "a", "--closed")
    for high, low in (("read", "none"), ("write", "read"), ("carry", "none")):
        sign(a, "grant", "user:b", high, f"{high}=*")
        expect_refused(a.verb("grant", "user:b", low, f"{high}=*", check=False), 1, "nothing was signed", "--yes")


@case("rights: what was answered as signed is there after a kill, and reaches who was away")
def signed_is_durable(bench: Bench):
    a, b = nodes = fleet(bench, "ab", "--closed")
    b.stop()
    for turn in range(5):
        sign(a, "grant", "device:b", "write", f"boat={turn}")
        a.kill()
        a.start()
    expect(len(statements(a)) == 6, f"{len(statements(a))} grants are there")
    b.start()
    for turn in range(5):
        await_level(nodes, "b", "write", f"boat={turn}")
