"""Devices that were lost, stolen or sent away: what of theirs counts, what is held, and what they still can do."""

from joining import devices, expect_refused
from node import Node
from rights import (
    OTHER, ROOM, await_end, await_level, await_shown, expect_shows_nothing, fleet, held, kept, next_moment, preview, shown,
    sign, split, write, write_all,
)  # fmt: skip
from runner import Bench, case
from waiting import expect, wait_for


def ended_while_away(bench: Bench) -> list[Node]:
    """Nodes a, b and c: b was revoked by a while it was away, and has written two changes more since it went."""
    a, b, c = nodes = fleet(bench, "abc")
    write_all(b, "before")
    await_shown(nodes, {"before"})
    split(bench, [b], [a, c])
    sign(a, "revoke", "b")
    write_all(b, "meanwhile-1", "meanwhile-2")
    return nodes


def let_hear_of_end(bench: Bench, b: Node):
    bench.network.heal()
    wait_for(75, "b knows that it was ended", lambda: "device-ended" in b.findings(), 0.3)


@case("revoked while away: what is there counts, what it wrote meanwhile is held on it and shown nowhere, nothing new reaches it")
def revoked_while_away(bench: Bench):
    a, b, c = nodes = ended_while_away(bench)
    expect(shown(b) == {"before", "meanwhile-1", "meanwhile-2"}, "b, which has not heard of it, does not show its own")
    let_hear_of_end(bench, b)
    finding = b.findings()["device-ended"]
    expect("2 changes of its own are held" in finding["message"], f"the doctor says: {finding['message']}")
    await_shown(nodes, {"before"})
    expect(held(b) == 2, f"b keeps {held(b)} of the 2 changes that do not count")
    expect(b.ask("/v1/status")["heldOfEnded"] == {"b": 2}, f"status says {b.ask('/v1/status')['heldOfEnded']}")
    expect(write(b, "after") == 403, "an ended device writes")
    write_all(a, "news")
    await_shown([a, c], {"before", "news"})
    b.kill()
    b.start()
    expect("device-ended" in b.findings() and held(b) == 2, "a restart forgets it")
    await_level([a, c], "b", "none")
    expect(kept(b) == {"before"}, f"an ended device was sent news: {kept(b)}")
    expect_shows_nothing(b, why="its membership was ended")
    ended = [device["endedBy"] for device in devices(c) if device["label"] == "b"][0]
    expect([end["issuer"] for end in ended] == ["a"] and ended[0]["since"], f"devices says of b {ended}")
    expect("ended by a, issued 20" in c.verb("devices").stdout, f"devices does not show it: {c.verb('devices').stdout}")
    expect(not any(device["endedBy"] for device in devices(c) if device["label"] != "b"), "others are shown as ended")
    refused = b.verb("invite", "--user", "x@lab.example", check=False)
    expect(refused.returncode == 4, f"an ended device invites: {refused.stdout}")


@case("revoked while away: what it wrote meanwhile is handed over, held everywhere, and counts once it is raised")
def handed_over(bench: Bench):
    a, b, c = ended_while_away(bench)
    let_hear_of_end(bench, b)
    wait_for(60, "a holds what b wrote meanwhile", lambda: held(a) == 2, 0.3)
    expect(a.ask("/v1/status")["heldOfEnded"] == {"b": 2}, f"status says {a.ask('/v1/status')['heldOfEnded']}")
    expect(shown(a) == {"before"}, "what is held is shown")
    sign(a, "raise", "b")
    await_shown([a, c], {"before", "meanwhile-1", "meanwhile-2"})
    expect(write(b, "after") == 403, "a raise lets an ended device write")


@case("revoked: what others hold beyond it is held, and raised where it lies")
def held_elsewhere(bench: Bench):
    a, b, c = nodes = fleet(bench, "abc")
    sign(a, "promote", "c")
    write_all(b, "before")
    await_shown(nodes, {"before"})
    split(bench, [a], [b, c])
    write_all(b, "late")
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
    a, b, c = nodes = fleet(bench, "abc")
    write_all(b, "good-1", "good-2")
    await_shown(nodes, {"good-1", "good-2"})
    at = next_moment()
    write_all(b, "bad-1", "bad-2", "bad-3")
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


@case("revoked as of a time before the device ever wrote: nothing of it counts, and every node starts again")
def revoked_from_the_beginning(bench: Bench):
    a, b, c = nodes = fleet(bench, "abc")
    write_all(a, "of-a")
    write_all(b, "of-b")
    await_shown(nodes, {"of-a", "of-b"})
    sign(a, "revoke", "b", "--at", "2020-01-01T00:00:00Z")
    await_shown([a, c], {"of-a"}, seconds=10)
    for node in (a, c):
        node.stop()
        node.start()
    await_shown([a, c], {"of-a"})


@case("revoked by an admin who has not heard of the device's replica: nodes that hold its work start again")
def revoked_unheard(bench: Bench):
    a, b, c = nodes = fleet(bench, "abc")
    write_all(c, "of-c")
    await_shown(nodes, {"of-c"})
    split(bench, [a], [b, c])
    write_all(b, "first-words")
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
    a, b, c = nodes = fleet(bench, "abc")
    write_all(b, "before")
    await_shown(nodes, {"before"})
    split(bench, [a], [b, c])
    # In a partition of which a has nothing yet, and in one of which it has.
    write_all(b, "late", partition=OTHER)
    write_all(b, "late")
    await_shown([c], {"late"}, OTHER)
    await_shown([c], {"before", "late"})
    said = sign(a, "retire", "b")
    bench.note(f"says {said['says']}")
    let_hear_of_end(bench, b)
    await_shown([a, c], {"late"}, OTHER, seconds=60)
    expect(write(b, "after") == 403, "a retired device writes")
    await_level([a, c], "b", "none")
    expect_refused(a.verb("retire", "b", "--yes", check=False), 1, "no member any more")


@case("revoked by an admin who does not carry a partition: what is there of it stays on those who carry it")
def not_carried(bench: Bench):
    a, b, c = fleet(bench, "abc", wanted={"a": ROOM})
    write_all(b, "seen")
    write_all(b, "unseen", partition=OTHER)
    write_all(a, "mine", partition="room=3")
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
    a, b, c = fleet(bench, "abc", wanted={"a": ROOM})
    write_all(b, "seen")
    write_all(b, "unseen", partition=OTHER)
    write_all(c, "honest", partition=OTHER)
    await_shown([a, b, c], {"seen"})
    await_shown([b, c], {"unseen", "honest"}, OTHER)
    sign(a, "revoke", "b", "--compromised")
    await_shown([a, c], {"seen"})
    await_shown([c], {"honest"}, OTHER)
    expect(held(c, OTHER) == 1, f"{held(c, OTHER)} changes are held, not 1")
    c.kill()
    c.start()
    await_shown([c], {"honest"}, OTHER)
