"""A multicast DNS responder for one host: its own D-Bus and avahi-daemon, with a runtime directory nobody else sees."""

import os
import shutil
import subprocess

from network import Host
from processes import Process
from waiting import Skip, wait_for

_BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>system</type><listen>unix:path={bus}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/>
</policy></busconfig>
"""

_AVAHI = """[server]
host-name={name}
use-ipv4={ipv4}
use-ipv6=yes
[wide-area]
enable-wide-area=no
[publish]
publish-hinfo=no
publish-workstation=no
"""


class Responder:
    def __init__(self, host: Host, ipv4: bool = True):
        for tool in ("dbus-daemon", "avahi-daemon", "dbus-send"):
            if not shutil.which(tool):
                raise Skip(f"{tool} is not installed")
        self._host, self._directory = host, host.directory
        self._bus = self._daemon = None
        host.responder = self
        with open(f"{self._directory}/bus.conf", "w") as file:
            file.write(_BUS.format(bus=f"{self._directory}/bus"))
        with open(f"{self._directory}/avahi.conf", "w") as file:
            file.write(_AVAHI.format(name=f"{host.network.name}-{host.name}", ipv4="yes" if ipv4 else "no"))
        self._start_bus()
        self.start()

    def _start_bus(self):
        self._bus = Process(
            self._host.command("dbus-daemon", f"--config-file={self._directory}/bus.conf", "--nofork", "--nopidfile"),
            self._host.environment, f"{self._directory}/bus.log", f"{self._directory}/bus.log")  # fmt: skip
        wait_for(10, "the bus of a responder", lambda: os.path.exists(f"{self._directory}/bus"), 0.02)

    def start(self):
        script = (
            "mount -t tmpfs none /run/avahi-daemon && exec avahi-daemon --no-drop-root --no-chroot --no-rlimits "
            '--no-proc-title -f "$0"')  # fmt: skip
        self._daemon = Process(
            self._host.command(
                "unshare", "--mount", "--propagation", "private", "sh", "-c", script, f"{self._directory}/avahi.conf"),
            self._host.environment, f"{self._directory}/avahi.log", f"{self._directory}/avahi.log")  # fmt: skip
        wait_for(60, f"the responder of {self._host.name} runs", self._is_running, 0.05)

    def _is_running(self) -> bool:
        asked = subprocess.run(
            ["dbus-send", "--system", "--print-reply", "--dest=org.freedesktop.Avahi", "/",
             "org.freedesktop.Avahi.Server.GetState"],
            env=self._host.environment, capture_output=True, text=True)  # fmt: skip
        return "int32 2" in asked.stdout

    def stop(self):
        self._daemon.stop()

    def kill(self):
        self._daemon.kill()

    def signal(self, number: int):
        self._daemon.signal(number)

    def end(self):
        for process in (self._daemon, self._bus):
            if process:
                process.kill()
