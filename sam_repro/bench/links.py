"""A private network of this machine's own: a namespace a rank, a bridge between them, and links of a given rate.

By iproute2 (Debian's package of that name), as root. Nothing of the machine's own network is touched, and everything is
gone at the end, whatever happens.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from sam_repro.errors import UserError


@dataclass(frozen=True)
class Network:
    names: list[str]  # of the ranks' namespaces
    hub: str

    @staticmethod
    def address(rank: int) -> str:
        return f"10.87.0.{rank + 1}"

    def shape(self, gbits: float) -> None:
        """Both directions of every link, by a token bucket of a millisecond."""
        burst = max(64_000, int(gbits * 1e9 / 8 / 1000))
        for rank, name in enumerate(self.names):
            for space, device in ((name, "eth0"), (self.hub, f"port{rank}")):
                shaping = f"tc qdisc replace dev {device} root tbf rate {gbits:g}gbit burst {burst}b latency 50ms"
                ip("netns", "exec", space, *shaping.split())

    def inside(self, rank: int) -> list[str]:
        """What to put before a command that runs there."""
        return ["ip", "netns", "exec", self.names[rank]]


def ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"ip {' '.join(words)}: {done.stderr.strip() or done.returncode}")


@contextmanager
def network(ranks: int) -> Iterator[Network]:
    if shutil.which("ip") is None or shutil.which("tc") is None:
        raise UserError("bench ranks shapes links by ip and tc: install iproute2")
    if os.geteuid():
        raise UserError("bench ranks makes network namespaces, which takes root")
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    base = f"sam-{os.getpid()}"
    made = Network([f"{base}-{rank}" for rank in range(ranks)], f"{base}-hub")
    try:
        for name in (made.hub, *made.names):
            ip("netns", "add", name)
        ip("-n", made.hub, "link", "add", "bridge0", "type", "bridge")
        ip("-n", made.hub, "link", "set", "bridge0", "up")
        for rank, name in enumerate(made.names):
            ip("-n", made.hub, "link", "add", f"port{rank}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("-n", made.hub, "link", "set", f"port{rank}", "master", "bridge0", "up")
            ip("-n", name, "address", "add", f"{made.address(rank)}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield made
    finally:
        for name in (made.hub, *made.names):
            with suppress(UserError):
                ip("netns", "delete", name)
        signal.signal(signal.SIGTERM, before)
