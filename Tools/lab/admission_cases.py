"""That one code lets exactly one device in: at once, through kills, with an older store, beside strangers."""

import json
import os
import subprocess
import time

from fleets import add_node, await_meeting
from intruders import intrude
from joining import devices, expect_refused, invitations, new_device
from node import Node
from runner import Bench, case
from waiting import expect, wait_for


@case("joining: of six devices with one code at once exactly one gets in")
def at_once(bench: Bench):
    a = add_node(bench.network, "a", None)
    a.start()
    rivals = [new_device(bench, f"d{number}") for number in range(6)]
    for turn in range(3):
        code = a.invite("one@lab.example")
        joins = [device.begin("join", code, "--label", f"{device.name}") for device in rivals]
        ended = [(join.communicate(timeout=60)[1].strip(), join.returncode) for join in joins]
        let_in = [device for device, (_, status) in zip(rivals, ended) if status == 0]
        expect(len(let_in) == 1, f"{len(let_in)} devices got in with one code: {ended}")
        for text, status in ended:
            if status != 0:
                expect(status == 4 and "was used by another device" in text, f"a late one hears {status}: {text}")
        expect(len(devices(a)) == turn + 2, f"a knows {len(devices(a))} devices")
        rivals.remove(let_in[0])


@case("joining: a join that is killed again and again ends as one device of the fleet")
def killed(bench: Bench):
    a = add_node(bench.network, "a", None)
    a.start()
    b = new_device(bench, "b")
    code = a.invite("b@lab.example")
    begun = (f"{b.directory}/setup.partial", f"{b.directory}/device.key")
    kills = 0
    for stage in ("claimed", "keyed", "admitted", "admitted", "keyed"):
        join = b.begin("join", code, "--label", "b")
        reached = {
            "claimed": lambda: os.path.exists(begun[0]), "keyed": lambda: os.path.exists(begun[1]),
            "admitted": lambda: len(a.ask("/v1/devices")["devices"]) == 2,
        }[stage]  # fmt: skip
        wait_for(20, f"the join has {stage}", lambda: reached() or join.poll() is not None, 0.001)
        if join.poll() is not None:
            break
        join.kill()
        join.wait()
        kills += 1
    bench.note(f"{kills} kills")
    last = b.verb("join", code, "--label", "b", check=False)
    is_set_up = last.returncode == 0 or os.path.exists(f"{b.directory}/fleet.id")
    expect(is_set_up, f"after all kills join ends with {last.returncode}: {last.stderr}")
    expect(len(devices(a)) == 2, f"the device entered more than once: {devices(a)}")
    b.start()
    await_meeting([a, b])
    c = new_device(bench, "c")
    expect_refused(c.verb("join", code, check=False), 4, "was used by another device")


@case("joining: an invitation and its use survive a kill of the inviting device")
def inviter_is_killed(bench: Bench):
    a = add_node(bench.network, "a", None)
    a.start("--listen", "7000")
    code = a.invite("b@lab.example")
    a.kill()
    a.start()
    b, c = new_device(bench, "b"), new_device(bench, "c")
    join = b.begin("join", code, "--label", "b")
    wait_for(20, "a lets b in", lambda: len(a.ask("/v1/devices")["devices"]) == 2, 0.001)
    a.kill()
    a.start()
    join.communicate(timeout=60)
    expect(join.returncode == 0, f"the join ended with {join.returncode}")
    expect_refused(c.verb("join", code, check=False), 4, "was used by another device")


@case("joining: a store put back from before an invitation was used learns of it from others")
def restored_inviter(bench: Bench):
    a, used, later = _put_back(bench)
    c = new_device(bench, "c")
    expect_refused(c.verb("join", used, check=False), 4, "was used by another device")
    expect_refused(c.verb("join", later, check=False), 4, "did not make it")
    serial = json.loads(a.verb("invite", "--user", "c@lab.example", "--json").stdout)["serial"]
    expect(serial > 1, f"a serial number is given twice: {serial}")


@case("joining: a store put back from before an invitation was used shows it as open no longer, once it knows")
def restored_list(bench: Bench):
    a, _, _ = _put_back(bench)
    expect(not invitations(a), f"the used invitation is still shown as open: {invitations(a)}")
    expect_refused(a.verb("invites", "--cancel", "1", check=False), 1, "used already")
    a.stop()
    # Without a node, too.
    expect(not invitations(a), f"the used invitation is shown as open where no node runs: {invitations(a)}")


@case("joining: a store put back from before an invitation was made says that it was used, once it knows")
def restored_before_made(bench: Bench):
    a = add_node(bench.network, "a", None)
    a.start("--listen", "7000")
    a.verb("backup", f"{a.directory}.backup")
    code = a.invite("b@lab.example")
    b, c = new_device(bench, "b"), new_device(bench, "c")
    b.verb("join", code, "--label", "b")
    a.stop()
    a.verb("restore", f"{a.directory}.backup")
    a.start()
    b.start()
    wait_for(20, "a hears of b's membership", lambda: len(devices(a)) == 2)
    expect_refused(c.verb("join", code, check=False), 4, "was used by another device")


def _put_back(bench: Bench) -> tuple[Node, str, str]:
    """A node whose store is older than the use of the first code, and than the second; it has heard of that use."""
    a = add_node(bench.network, "a", None)
    a.start("--listen", "7000")
    used = a.invite("b@lab.example")
    a.verb("backup", f"{a.directory}.backup")
    b = new_device(bench, "b")
    b.verb("join", used, "--label", "b")
    later = a.invite("c@lab.example")
    a.stop()
    a.verb("restore", f"{a.directory}.backup")
    a.start()
    expect(len(invitations(a)) == 1 and len(devices(a)) == 1, "the store is not that from before the use")
    b.start()
    wait_for(20, "a hears of b's membership", lambda: len(devices(a)) == 2)
    return a, used, later


@case("joining: an admin is let in only where the root key lies at that moment")
def as_admin(bench: Bench):
    a = add_node(bench.network, "a", None)
    a.start()
    code = json.loads(a.verb("invite", "--user", "b@lab.example", "--role", "admin", "--json").stdout)["code"]
    root = f"{a.directory}/fleet-root.key"
    os.rename(root, f"{a.directory}.stick")
    b = new_device(bench, "b")
    expect_refused(b.verb("join", code, check=False), 4, "root key")
    refused = a.verb("invite", "--user", "b@lab.example", "--role", "admin", check=False)
    expect_refused(refused, 4, "root key", "another role")
    expect(len(devices(a)) == 1, "a device entered without the root key")
    os.rename(f"{a.directory}.stick", root)
    b.verb("join", code, "--label", "b")
    b.start()
    c = new_device(bench, "c")
    c.join(b)
    expect(b.verb("invite", "--user", "d@lab.example", "--role", "admin", check=False).returncode == 4,
           "an admin without the root key invites admins")  # fmt: skip
    c.start()
    refused = c.verb("invite", "--user", "d@lab.example", check=False)
    expect_refused(refused, 4, "no admin")


@case("joining: a code of an admin who was ended lets nobody in, and says so")
def ended_inviter(bench: Bench):
    a = add_node(bench.network, "a", None)
    a.start()
    code = json.loads(a.verb("invite", "--user", "b@lab.example", "--role", "admin", "--json").stdout)["code"]
    b = new_device(bench, "b")
    b.verb("join", code, "--label", "b")
    b.start()
    await_meeting([a, b])
    of_b = b.invite("c@lab.example")
    a.verb("revoke", "b", "--yes")
    wait_for(20, "b knows that it was ended", lambda: "device-ended" in b.findings(), 0.2)
    c = new_device(bench, "c")
    expect_refused(c.verb("join", of_b, check=False), 4, "no admin any more")
    expect(len(devices(a)) == 2, f"a knows {len(devices(a))} devices")


@case("joining: beside thirty-two connections that say nothing a device gets in within seconds")
def beside_silence(bench: Bench):
    _join_beside(bench, "vwyz", "8")


@case("joining: beside a host that makes thirty-two connections, each anew when it is closed, a device gets in at once")
def beside_one_host(bench: Bench):
    _join_beside(bench, "v", "32", "again")


@case("joining: beside four hosts that make thirty-two connections, each anew when it is closed, a device gets in")
def beside_four_hosts(bench: Bench):
    _join_beside(bench, "vwyz", "8", "again")


def _join_beside(bench: Bench, hosts: str, *how: str):
    network = bench.network
    a = add_node(network, "a", None)
    a.start("--listen", "7000")
    codes = [a.invite(f"{name}@lab.example") for name in "bcd"]
    for name in hosts:
        intrude(network.host(name), "hold", a.host.addresses[0], "7000", *how)
    wait_for(10, lambda: f"strangers hold connections; there are {_held(a)}", lambda: _held(a) >= 8 * len(hosts), 0.01)
    times = []
    for name, code in zip("bcd", codes):
        node = new_device(bench, name)
        began = time.monotonic()
        node.verb("join", code, "--label", name)
        times.append(time.monotonic() - began)
    bench.note("joined in " + ", ".join(f"{seconds:.1f}" for seconds in times) + " s")
    expect(max(times) < 10, f"joins took {times} s")


def _held(node: Node) -> int:
    """Connections to the node's port, as its host counts them."""
    done = subprocess.run(
        node.host.command("ss", "-Htn", "state", "established", "sport", "=", ":7000"), capture_output=True, text=True)
    return len(done.stdout.splitlines())
