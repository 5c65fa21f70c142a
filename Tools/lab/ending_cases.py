"""Devices that were lost, stolen or sent away: what of theirs counts, what is held, and what they still can do."""

import os

from clone_cases import copy_of
from fleets import await_meeting
from joining import devices, expect_refused
from node import Node
from rights import (
    OTHER, ROOM, add_member, await_end, await_level, await_shown, found_fleet, held, next_moment, preview, shown, sign,
    write,
)  # fmt: skip
from runner import Bench, case
from waiting import expect, wait_for


def _fleet(bench: Bench, names: str, wanted: dict[str, str] | None = None) -> list[Node]:
    """An open fleet, founded by the first; all are connected, and want the rooms or what is said."""
    wanted = wanted or {}
    nodes = [found_fleet(bench.network, names[0])]
    nodes[0].subscribe(wanted.get(names[0], "room=*"))
    nodes += [add_member(bench.network, name, nodes[0], wanted.get(name, "room=*")) for name in names[1:]]
    await_meeting(nodes)
    return nodes


def _split(bench: Bench, *sides: list[Node]):
    bench.network.split(*([node.host for node in side] for side in sides))


def _write(node: Node, *identifiers: str, partition: str = ROOM):
    for identifier in identifiers:
        status = write(node, identifier, partition)
        expect(status in (200, 201), f"a write on {node.name} was answered {status}")


@case("revoked while away: what is there counts, what it wrote meanwhile is held on it and shown nowhere, nothing new reaches it")
def revoked_while_away(bench: Bench):
    a, b, c = nodes = _fleet(bench, "abc")
    _write(b, "before")
    await_shown(nodes, {"before"})
    _split(bench, [b], [a, c])
    sign(a, "revoke", "b")
    _write(b, "meanwhile-1", "meanwhile-2")
    expect(shown(b) == {"before", "meanwhile-1", "meanwhile-2"}, "b, which has not heard of it, does not show its own")
    bench.network.heal()
    wait_for(75, "b knows that it was ended", lambda: "device-ended" in b.findings(), 0.3)
    finding = b.findings()["device-ended"]
    expect("2 changes of its own are held" in finding["message"], f"the doctor says: {finding['message']}")
    await_shown(nodes, {"before"})
    expect(held(b) == 2, f"b keeps {held(b)} of the 2 changes that do not count")
    expect(b.ask("/v1/status")["heldOfEnded"] == {"b": 2}, f"status says {b.ask('/v1/status')['heldOfEnded']}")
    expect(write(b, "after") == 403, "an ended device writes")
    _write(a, "news")
    await_shown([a, c], {"before", "news"})
    b.kill()
    b.start()
    expect("device-ended" in b.findings() and held(b) == 2, "a restart forgets it")
    await_level([a, c], "b", "none")
    expect(shown(b) == {"before"}, f"an ended device was sent news: {shown(b)}")
    refused = b.verb("invite", "--user", "x@lab.example", check=False)
    expect(refused.returncode == 4, f"an ended device invites: {refused.stdout}")


@case("revoked while away: what it wrote meanwhile is handed over, held everywhere, and counts once it is raised",
      open="a device that was ended cannot hand over what it wrote")  # fmt: skip
def handed_over(bench: Bench):
    a, b, c = nodes = _fleet(bench, "abc")
    _write(b, "before")
    await_shown(nodes, {"before"})
    _split(bench, [b], [a, c])
    sign(a, "revoke", "b")
    _write(b, "meanwhile-1", "meanwhile-2")
    bench.network.heal()
    wait_for(75, "b knows that it was ended", lambda: "device-ended" in b.findings(), 0.3)
    wait_for(60, "a holds what b wrote meanwhile", lambda: held(a) == 2, 0.3)
    expect(a.ask("/v1/status")["heldOfEnded"] == {"b": 2}, f"status says {a.ask('/v1/status')['heldOfEnded']}")
    expect(shown(a) == {"before"}, "what is held is shown")
    sign(a, "raise", "b")
    await_shown([a, c], {"before", "meanwhile-1", "meanwhile-2"})
    expect(write(b, "after") == 403, "a raise lets an ended device write")


@case("revoked: what others hold beyond it is held by them, passed on to nobody, and raised where it lies")
def held_elsewhere(bench: Bench):
    a, b, c = nodes = _fleet(bench, "abc")
    sign(a, "promote", "c")
    _write(b, "before")
    await_shown(nodes, {"before"})
    _split(bench, [a], [b, c])
    _write(b, "late")
    await_shown([b, c], {"before", "late"})
    sign(a, "revoke", "b")
    bench.network.heal()
    await_shown(nodes, {"before"}, seconds=75)
    expect(held(c) == 1, f"c holds {held(c)} changes, not 1")
    finding = wait_for(10, "c's doctor tells of it", lambda: c.findings().get("held-of-ended-devices"))
    expect("1 change of b" in finding["message"], f"it says: {finding['message']}")
    said = sign(c, "raise", "b")
    expect([fall["gainedChanges"] for fall in said["falls"]] == [1], f"the raise says {said}")
    await_shown([a, c], {"before", "late"})
    expect(write(b, "after") == 403, "a raise lets an ended device write")
    expect_refused(c.verb("raise", "b", "--yes", check=False), 1, "nothing")


@case("revoked as of a time: what came later falls everywhere, is raised, and falls not again; the numbers are said before")
def revoked_as_of(bench: Bench):
    a, b, c = nodes = _fleet(bench, "abc")
    _write(b, "good-1", "good-2")
    await_shown(nodes, {"good-1", "good-2"})
    at = next_moment()
    _write(b, "bad-1", "bad-2", "bad-3")
    everything = {"good-1", "good-2", "bad-1", "bad-2", "bad-3"}
    await_shown(nodes, everything)
    foreseen = preview(a, "revoke", "b", "--at", at)["falls"]
    expect([(fall["partition"], fall["lostChanges"], fall["documents"]) for fall in foreseen] == [(ROOM, 3, 3)],
           f"it foresees {foreseen}")  # fmt: skip
    sign(a, "revoke", "b", "--at", at)
    await_shown([a, b, c], {"good-1", "good-2"})
    for node in (a, c):
        node.kill()
        node.start()
    await_shown([a, c], {"good-1", "good-2"})
    sign(a, "raise", "b")
    await_shown([a, b, c], everything)
    expect(write(b, "after") == 403, "a raise lets an ended device write")
    for node in (a, c):
        node.kill()
        node.start()
    await_shown([a, c], everything)


@case("revoked as of a time before the device ever wrote: nothing of it counts, and every node starts again",
      open="stores that hold runs of a replica whose declaration counts no longer are taken for damaged: no node starts")  # fmt: skip
def revoked_from_the_beginning(bench: Bench):
    a, b, c = nodes = _fleet(bench, "abc")
    _write(a, "of-a")
    _write(b, "of-b")
    await_shown(nodes, {"of-a", "of-b"})
    sign(a, "revoke", "b", "--at", "2020-01-01T00:00:00Z")
    await_shown([a, c], {"of-a"}, seconds=10)
    for node in (a, c):
        node.stop()
        node.start()
    await_shown([a, c], {"of-a"})


@case("revoked by an admin who has not heard of the device's replica: nodes that hold its work start again",
      open="stores that hold runs of a replica whose declaration counts no longer are taken for damaged: no node starts")  # fmt: skip
def revoked_unheard(bench: Bench):
    a, b, c = nodes = _fleet(bench, "abc")
    _write(c, "of-c")
    await_shown(nodes, {"of-c"})
    _split(bench, [a], [b, c])
    _write(b, "first-words")
    await_shown([b, c], {"of-c", "first-words"})
    sign(a, "revoke", "b")
    bench.network.heal()
    await_end([c], "b", seconds=75)
    await_shown([a, c], {"of-c"})
    for node in (c, b):
        node.stop()
        node.start()
    await_shown([c], {"of-c"})


@case("retired while away: all that it wrote until it heard counts, though others bring it, and it writes no more")
def retired(bench: Bench):
    a, b, c = nodes = _fleet(bench, "abc")
    _write(b, "before")
    await_shown(nodes, {"before"})
    _split(bench, [a], [b, c])
    # In a partition of which a has nothing yet, and in one of which it has.
    _write(b, "late", partition=OTHER)
    _write(b, "late")
    await_shown([c], {"late"}, OTHER)
    await_shown([c], {"before", "late"})
    said = sign(a, "retire", "b")
    bench.note(f"says {said['says']}")
    bench.network.heal()
    wait_for(75, "b knows that it was ended", lambda: "device-ended" in b.findings(), 0.3)
    await_shown([a, c], {"late"}, OTHER, seconds=60)
    expect(write(b, "after") == 403, "a retired device writes")
    await_level([a, c], "b", "none")
    expect_refused(a.verb("retire", "b", "--yes", check=False), 1, "no member any more")


@case("revoked by an admin who does not carry a partition: what is there of it stays on those who carry it")
def not_carried(bench: Bench):
    a, b, c = _fleet(bench, "abc", {"a": ROOM})
    _write(b, "seen")
    _write(b, "unseen", partition=OTHER)
    _write(a, "mine", partition="room=3")
    await_shown([a, b, c], {"seen"})
    await_shown([b, c], {"unseen"}, OTHER)
    sign(a, "revoke", "b")
    await_end([c], "b")
    await_shown([a, c], {"seen"})
    await_shown([c], {"unseen"}, OTHER)
    expect(held(c, OTHER) == 0, f"{held(c, OTHER)} changes are held in what the admin does not carry")
    c.kill()
    c.start()
    await_shown([c], {"unseen"}, OTHER)


@case("revoked as compromised by an admin who does not carry a partition: there nothing of it counts")
def not_carried_compromised(bench: Bench):
    a, b, c = _fleet(bench, "abc", {"a": ROOM})
    _write(b, "seen")
    _write(b, "unseen", partition=OTHER)
    _write(c, "honest", partition=OTHER)
    await_shown([a, b, c], {"seen"})
    await_shown([b, c], {"unseen", "honest"}, OTHER)
    sign(a, "revoke", "b", "--compromised")
    await_shown([a, c], {"seen"})
    await_shown([c], {"honest"}, OTHER)
    expect(held(c, OTHER) == 1, f"{held(c, OTHER)} changes are held, not 1")
    c.kill()
    c.start()
    await_shown([c], {"honest"}, OTHER)


@case("rights: a grant lowered by an admin who carries nothing keeps what others hold")
def lowered_uncarried(bench: Bench):
    a, b, c = _fleet(bench, "abc", {"a": "nothing=1"})
    sign(a, "grant", "everyone", "read", "*")
    sign(a, "grant", "device:b", "write", "room=*")
    await_level([b, c], "b", "write")
    _write(b, "one")
    await_shown([b, c], {"one"})
    sign(a, "grant", "device:b", "read", "room=*")
    await_level([b, c], "b", "read")
    await_shown([b, c], {"one"})
    expect(write(b, "two") == 403, "b writes under a lowered grant")


@case("two admins who end one another while they are apart are both out, everywhere the same")
def two_admins(bench: Bench):
    a = found_fleet(bench.network, "a")
    b, c = (add_member(bench.network, name, a, "room=*", role="admin") for name in "bc")
    d = add_member(bench.network, "d", a, "room=*")
    a.subscribe("room=*")
    nodes = [a, b, c, d]
    await_meeting(nodes)
    _write(b, "of-b")
    _write(c, "of-c")
    await_shown(nodes, {"of-b", "of-c"})
    _split(bench, [a, b], [c, d])
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


@case("what an admin granted before he heard of his end is given back by a raise, where the root key lies",
      open="the device signs the raise although the root key lies there, and only root's settles what admins said")  # fmt: skip
def root_settles(bench: Bench):
    a = found_fleet(bench.network, "a", "--closed")
    b = add_member(bench.network, "b", a, "room=*", role="admin")
    d = add_member(bench.network, "d", a, "room=*")
    await_meeting([a, b, d])
    _split(bench, [a], [b, d])
    sign(a, "revoke", "b")
    sign(b, "grant", "device:d", "write", "room=*")
    await_level([d], "d", "write")
    bench.network.heal()
    await_level([d], "d", "none", seconds=75)
    expect(write(d, "early") == 403, "d writes by the word of an admin who was ended")
    sign(a, "raise", "b")
    await_level([a, d], "d", "write")
    expect(write(d, "one") in (200, 201), "d may not write")


@case("stolen: two copies of a device sign under the same numbers; once it is revoked neither goes on, and all agree")
def stolen(bench: Bench):
    a, b, thief, c = _steal(bench)
    bench.network.heal()
    everything = {"before", "honest-1", "honest-2", "stolen-1", "stolen-2", "stolen-3"}
    await_shown([a, b, thief, c], everything, seconds=75)
    sign(a, "revoke", "b", "--compromised")
    _expect_ended(b, thief)
    await_shown([a, c], everything)
    _expect_sound(a, c, everything)


@case("stolen: what the thief wrote out of the admin's sight falls, and the owner's stays",
      open="stores that hold runs of a replica whose declaration counts no longer are taken for damaged: no node starts")  # fmt: skip
def stolen_out_of_sight(bench: Bench):
    a, b, thief, c = _steal(bench)
    sign(a, "revoke", "b", "--compromised")
    bench.network.heal()
    _expect_ended(b, thief)
    await_shown([a, c], {"before", "honest-1", "honest-2"}, seconds=75)
    _expect_sound(a, c, {"before", "honest-1", "honest-2"})


def _steal(bench: Bench) -> list[Node]:
    """An admin beside the owner, and somebody beside the thief, who has a copy of the owner's directory. Both have written."""
    a, b, c = _fleet(bench, "abc")
    _write(b, "before")
    await_shown([a, b, c], {"before"})
    b.stop()
    thief = copy_of(bench, b)
    # Each finds its mark gone, declares a new replica for its next write, and so signs under the other's number.
    for node in (b, thief):
        os.remove(f"{node.directory}/replica.state")
    _split(bench, [a, b], [c, thief])
    for node in (b, thief):
        node.start("--listen", "7000")
    _write(b, "honest-1", "honest-2")
    _write(thief, "stolen-1", "stolen-2", "stolen-3")
    await_shown([a], {"before", "honest-1", "honest-2"}, seconds=75)
    await_shown([c], {"before", "stolen-1", "stolen-2", "stolen-3"}, seconds=75)
    replicas = {node.ask("/v1/status")["replica"] for node in (b, thief)}
    expect(len(replicas) == 2, "both write under one replica, which is another case")
    return [a, b, thief, c]


def _expect_ended(*copies: Node):
    """They know it, write nothing, and do neither after a kill."""
    for node in copies:
        wait_for(75, f"{node.name} knows that it was ended", lambda: "device-ended" in node.findings(), 0.3)
        expect(write(node, "after") == 403, f"{node.name} goes on")
        node.kill()
        node.start()
        expect(write(node, "after") == 403, f"{node.name} goes on after a restart")


def _expect_sound(a: Node, c: Node, documents: set[str]):
    """Both agree, and do so after a restart."""
    for _ in range(2):
        await_shown([a, c], documents)
        wait_for(30, "a and c agree", lambda: a.digests() == c.digests(), 0.3)
        for node in (a, c):
            expect(len(devices(node)) == 3, f"{node.name} knows {devices(node)}")
            node.stop()
            node.start()
