"""Where the processors of a VM that fell silent are, asked of QEMU's monitor before it is ended.

The same instruction in every look, not halted: the emulator runs an old translation for ever.
Others each time, or halted: the guest lives and does not get on; then it is the node that hangs,
and whoever should have kept it alive did not.
"""

import re
import socket
import time
from pathlib import Path

_LOOKS, _PAUSE_SECONDS = 6, 0.5
_WAIT_SECONDS = 2.0
_PLACE = re.compile(
    rb"CPU#(\d+).*?RIP=([0-9a-f]+) RFL=[0-9a-f]+ \[[^\]]*\] CPL=(\d).*?HLT=(\d)", re.DOTALL
)


def places(monitor: Path) -> list[str]:
    """A line for each look: instruction and ring of each processor; why not, where QEMU is mute."""
    try:
        return _asked(monitor)
    except OSError as error:
        return [f"QEMU's monitor: {error}"]


def _asked(monitor: Path) -> list[str]:
    with socket.socket(socket.AF_UNIX) as end:
        end.settimeout(_WAIT_SECONDS)
        end.connect(str(monitor))
        _said(end)
        found = []
        for _ in range(_LOOKS):
            end.sendall(b"info registers -a\n")
            told = _PLACE.findall(_said(end))
            words = [tuple(map(bytes.decode, row)) for row in told]
            cpus = [f"CPU {cpu} at {at} ring {ring} halted {hlt}" for cpu, at, ring, hlt in words]
            found.append(f"silent: {', '.join(cpus)}")
            time.sleep(_PAUSE_SECONDS)
    return found


def _said(end: socket.socket) -> bytes:
    """Until the next prompt."""
    text = b""
    while not text.rstrip().endswith(b"(qemu)"):
        part = end.recv(1 << 16)
        if not part:
            break
        text += part
    return text
