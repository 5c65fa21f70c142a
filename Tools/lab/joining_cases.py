"""How devices enter a fleet by codes, and what a person hears where one is not good."""

import json
import re
import subprocess
import time

from clocks import YEAR, wrong_clock
from fleets import PARTITION, add_node, await_equal, await_meeting, enrol
from intruders import intrude
from joining import devices, expect_refused, expect_sentence, invitations, new_device
from node import Node
from preloading import preloaded
from responder import Responder
from runner import Bench, case
from terminal import Terminal
from waiting import expect, wait_for


@case("joining: a code lets one device in, as what the invitation says, and that device works")
def by_code(bench: Bench):
    a = add_node(bench.network, "a", None)
    a.start()
    b, c = new_device(bench, "b"), new_device(bench, "c")
    profile = json.dumps({"agency": "Harbour", "vessel": "Ébano"})
    code = json.loads(a.verb(
        "invite", "--user", "b@lab.example", "--role", "officer", "--profile", profile, "--json").stdout)["code"]  # fmt: skip
    began = time.monotonic()
    b.verb("join", code, "--label", "bridge tablet")
    bench.note(f"joined in {time.monotonic() - began:.1f} s")
    found = {row["label"]: row for row in devices(a)}.get("bridge tablet")
    expect(found, f"a does not know the new device: {devices(a)}")
    expect((found["user"], found["role"], found["profile"]) == ("b@lab.example", "officer", json.loads(profile)),
           f"it entered as {found}")  # fmt: skip
    expect(not invitations(a), f"the invitation is still open: {invitations(a)}")
    for again in (code, code.lower()):
        expect_refused(c.verb("join", again, check=False), 4, "was used by another device", "seamesh invite")
    expect(len(devices(a)) == 2, "a second device entered with the same code")
    b.start()
    for node in (a, b):
        node.subscribe(PARTITION)
    b.put_many(PARTITION, "b", 5)
    await_equal([a, b], 5)
    # Who was refused is not spoilt by it.
    c.join(a)


@case("joining: an expired code and a cancelled one are refused, each with its reason, and let nobody in later")
def expired_and_cancelled(bench: Bench):
    a = add_node(bench.network, "a", None)
    a.start("--listen", "7000")
    b = new_device(bench, "b")
    expired = json.loads(a.verb("invite", "--user", "b@lab.example", "--valid", "1s", "--json").stdout)["code"]
    wait_for(10, "the invitation is open no longer", lambda: not invitations(a))
    cancelled = a.invite("b@lab.example")
    serial = str(invitations(a)[0]["serial"])
    a.verb("invites", "--cancel", serial)
    expect(not invitations(a), "a cancelled invitation is shown as open")
    again = a.verb("invites", "--cancel", serial, check=False)
    expect(again.returncode == 3 and serial in again.stderr, f"cancelled twice: {again.returncode} {again.stderr}")
    for turn in range(2):
        expect_refused(b.verb("join", expired, check=False), 4, "expired", "seamesh invite")
        expect_refused(b.verb("join", cancelled, check=False), 4, "was cancelled", "seamesh invite")
        a.kill()
        a.start()
    expect(len(devices(a)) == 1, f"somebody entered: {devices(a)}")


@case("joining: a mistyped code is found without any network, and leaves nothing behind")
def mistyped(bench: Bench):
    network = bench.network
    a, b = enrol(Node(network.host("a")), None), new_device(bench, "b")
    b.host.link("down")
    code = a.invite("b@lab.example")
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
    wrong = {code[:-1], code[1:], code + "A", code[:40] + code[41:]}
    for _ in range(8):
        place = bench.random.randrange(len(code))
        other = bench.random.choice(letters.replace(code[place], ""))
        wrong.add(code[:place] + other + code[place + 1:])
        place = bench.random.choice([place for place in range(len(code) - 1) if code[place] != code[place + 1]])
        wrong.add(code[:place] + code[place + 1] + code[place] + code[place + 2:])
    began = time.monotonic()
    for text in sorted(wrong):
        expect_refused(b.verb("join", text, check=False), 2, "mistyped", "compare it")
    expect_refused(b.verb("join", code[:20] + "0" + code[21:], check=False), 2, "'0' at place 21")
    each = (time.monotonic() - began) / (len(wrong) + 1)
    bench.note(f"{len(wrong)} mistakes, {each * 1000:.0f} ms each")
    expect(each < 2, f"a mistyped code was looked for: {each:.1f} s each")
    b.host.link("up")
    a.start()
    # As people write it down.
    spaced = "-".join(code[place:place + 5].lower() for place in range(0, len(code), 5))
    b.verb("join", spaced, "--peer", f"{a.host.addresses[0]}:{a.port}")


@case("joining: by discovery alone, with a responder and without, where the code has no address or only old ones")
def by_discovery(bench: Bench):
    network = bench.network
    a = add_node(network, "a", None)
    without = [a.invite(f"{name}@lab.example") for name in "bc"]
    a.start("--listen", "7000")
    old = [a.invite(f"{name}@lab.example") for name in "de"]
    a.stop()
    a.host.ip("addr", "flush", "dev", "eth0", "scope", "global")
    a.host.ip("addr", "add", "10.77.0.200/24", "brd", "+", "dev", "eth0")
    a.start("--listen", "7001")
    # The code's address is somebody else's now, who refuses.
    network.host("x").ip("addr", "add", "10.77.0.11/24", "brd", "+", "dev", "eth0")
    for name, code in zip("bcde", without + old):
        node = new_device(bench, name)
        if name in "bd":
            Responder(node.host)
        began = time.monotonic()
        node.verb("join", code, "--label", name)
        bench.note(f"{name} in {time.monotonic() - began:.1f} s")
    expect({row["label"] for row in devices(a)} == set("abcde"), f"a knows {devices(a)}")


@case("joining: a device invites, runs and is asked, and at no process's end is freed what its threads still use")
def ends(bench: Bench):
    a = add_node(bench.network, "a", None)
    a.environment = preloaded(bench, "exit")
    # Asks for a node first, with another library, and then opens the directory itself.
    code = a.invite("b@lab.example")
    a.start("--listen", "7000")
    expect(len(invitations(a)) == 1, f"open are {invitations(a)}")
    b = new_device(bench, "b")
    b.environment = a.environment
    b.verb("join", code, "--peer", f"{a.host.addresses[0]}:7000")
    a.stop()


@case("joining: a tablet whose clock stands at 1970 joins and works, and so does one that is in 2046")
def wrong_clocks(bench: Bench):
    a = add_node(bench.network, "a", None)
    a.start()
    a.subscribe(PARTITION)
    nodes = [a]
    for name, offset in (("b", -int(time.time())), ("c", 20 * YEAR)):
        node = new_device(bench, name)
        node.environment = wrong_clock(bench, offset)
        profile = json.dumps({"agency": "Laboratory"})
        code = json.loads(a.verb(
            "invite", "--user", f"{name}@lab.example", "--valid", "30m", "--profile", profile, "--json").stdout)["code"]  # fmt: skip
        node.verb("join", code, "--label", name)
        node.start()
        node.subscribe(PARTITION)
        nodes.append(node)
    for node in nodes:
        node.put_many(PARTITION, node.name, 5)
    await_equal(nodes, 15)
    with open(nodes[1].log) as file:
        expect(file.read().startswith("1970-01-01"), "the clock was not at 1970")


@case("joining: a tablet at 1970 invites another device, by its own clock")
def inviter_at_1970(bench: Bench):
    a = add_node(bench.network, "a", None)
    a.environment = wrong_clock(bench, -int(time.time()))
    a.start()
    b, c = new_device(bench, "b"), new_device(bench, "c")
    b.join(a)
    expired = json.loads(a.verb("invite", "--user", "c@lab.example", "--valid", "1s", "--json").stdout)["code"]
    wait_for(10, "the invitation is open no longer", lambda: not invitations(a))
    expect_refused(c.verb("join", expired, check=False), 4, "expired")


@case("joining: whom it waits for is shown, and who comes late lets the device in")
def waits(bench: Bench):
    a = add_node(bench.network, "a", None)
    a.start("--listen", "7000")
    c = add_node(bench.network, "c", a)
    c.start()
    await_meeting([a, c])
    b = new_device(bench, "b")
    code = a.invite("b@lab.example")
    a.stop()
    terminal = Terminal(b, "join", code, "--label", "b")
    terminal.await_text(r"waiting for device [^:]*: \d+ of 30 s")
    terminal.await_text(r"waiting for device a \([0-9a-f]+\): \d+ of 30 s", 15)
    a.start()
    status = terminal.await_end()
    expect(status == 0 and "entered fleet" in terminal.shown, f"join ended with {status}: {terminal.shown}")


@case("joining: without the inviting device, other members say whose code it is, or that it was used")
def inviter_is_away(bench: Bench):
    a = add_node(bench.network, "a", None)
    a.start("--listen", "7000")
    c = add_node(bench.network, "c", a)
    c.start("--listen", "7000")
    await_meeting([a, c])
    used, unused = a.invite("b@lab.example"), a.invite("d@lab.example")
    b, late, d = new_device(bench, "b"), new_device(bench, "late"), new_device(bench, "d")
    b.verb("join", used, "--label", "b")
    wait_for(20, "c knows that b entered", lambda: len(devices(c)) == 3)
    a.stop()
    key = a.ready_line["device"][:8]
    joins = [late.begin("join", used), d.begin("join", unused)]
    said = [join.communicate(timeout=60)[1] for join in joins]
    for join, text in zip(joins, said):
        expect(join.returncode == 1, f"a join without the inviting device ended with {join.returncode}: {text}")
        expect(re.search(r"was not reached within 3\d s", text), f"it does not say how long it asked: {text}")
    expect_sentence(said[0], "used already")
    expect_sentence(said[1], f"device a ({key})", "did not make this code", "--peer")
    a.start()
    d.verb("join", unused, "--label", "d")
    expect_refused(late.verb("join", used, check=False), 4, "was used by another device")


@case("joining: on standard input the code is seen by nobody, and a directory that is in a fleet enters no other")
def on_standard_input(bench: Bench):
    a = add_node(bench.network, "a", None)
    a.start()
    b = new_device(bench, "b")
    done = subprocess.run(
        b.words("join", "-", "--label", "b"), input=a.invite("b@lab.example") + "\n", capture_output=True, text=True,
        timeout=60, env=b.host.environment)  # fmt: skip
    expect(done.returncode == 0, f"join - ended with {done.returncode}: {done.stderr}")
    with open(f"{b.directory}/device.key") as file:
        key = file.read()
    again = b.verb("join", a.invite("b@lab.example"), check=False)
    expect(again.returncode != 0, "a directory that is in a fleet was overwritten")
    expect(len(again.stderr.strip().splitlines()) == 1, f"not one sentence: {again.stderr}")
    with open(f"{b.directory}/device.key") as file:
        expect(file.read() == key, "the key was replaced")
    expect(len(devices(a)) == 2 and len(invitations(a)) == 1, "the second code was used")


@case("joining: a node of another fleet at the code's address stays mute, and the join says so")
def foreign_fleet(bench: Bench):
    network = bench.network
    a, x = Node(network.host("a")), add_node(network, "x", None)
    a.init()
    a.start("--listen", "7000", "--no-discovery")
    code = a.invite("b@lab.example")
    a.stop()
    # Whoever has the address now is another fleet's node; what passes is seen on the way.
    notes = f"{a.host.directory}/passed"
    open(notes, "w").close()
    x.start("--listen", "7000")
    intrude(a.host, "witness", "7000", x.host.addresses[0], "7000", notes)
    b = new_device(bench, "b")
    terminal = Terminal(b, "join", code)
    terminal.await_text(r"waiting for device [0-9a-f]+: \d+ of 30 s; 10\.77\.0\.11:7000 said nothing, as a node of another "
                        r"fleet does")  # fmt: skip
    status = terminal.await_end()
    expect(status == 1 and re.search(r"was not reached within 3\d s", terminal.shown) and "another fleet" in terminal.shown,
           f"join ended with {status}: {terminal.shown}")  # fmt: skip
    expect(_answers(notes) == [], f"after the joiner's request the other fleet's node sent {_answers(notes)}")
    expect(len(devices(x)) == 1, "a device entered another fleet")
    expect("wrong-join-code" not in x.findings(), "a node took a code of another fleet for a wrong one")
    with open(x.log) as file:
        expect("refused to admit" not in file.read(), "a node judged a code of another fleet")
    # That an answer would have been seen:
    a.start("--listen", "7001", "--no-discovery")
    intrude(a.host, "witness", "7002", a.host.addresses[0], "7001", notes)
    b.verb("join", code, "--peer", f"{a.host.addresses[0]}:7002")
    expect(_answers(notes) != [], "an answer passed unseen")


def _answers(notes: str) -> list[str]:
    """What came back behind the second thing that a caller said: its first is the beginning of TLS, its second the request."""
    answers, said = [], {}
    with open(notes) as file:
        for number, way, size in (line.split() for line in file):
            if way == ">":
                said[number] = said.get(number, 0) + 1
            elif said.get(number, 0) > 1 and size != "0":
                answers.append(size)
    expect(any(count > 1 for count in said.values()), f"nobody asked: {said}")
    return answers
