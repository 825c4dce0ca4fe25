"""Where the processors of a VM that fell silent are, asked of QEMU's monitor before it is ended.

The same instruction in every look, not halted: the emulator runs an old translation for ever.
Others each time, or halted: the guest lives and does not get on; then it is the node that hangs,
and whoever should have kept it alive did not.
"""

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path

from qemu.qmp import QMPClient, QMPError

_LOOKS = 6
_PAUSE_SECONDS = 0.5
_WAIT_SECONDS = 2.0
_REGISTERS = {"command-line": "info registers -a"}
_PLACE = re.compile(
    r"CPU#(\d+).*?[ER]IP=([0-9a-f]+) [ER]FL=[0-9a-f]+ \[[^\]]*\] CPL=(\d).*?HLT=(\d)", re.DOTALL
)


def places(monitor: Path) -> list[str]:
    """A line for each look: instruction and ring of each processor; why not, where QEMU is mute."""
    try:
        return asyncio.run(_places(str(monitor)))
    except (OSError, QMPError, asyncio.TimeoutError) as error:
        return [f"QEMU's monitor: {str(error) or 'no answer'}"]


def pause(monitor: Path) -> None:
    """All processors of the VM stand still from now on, and nobody in it knows; QMPError."""
    asyncio.run(_execute(str(monitor), "stop"))


def resume(monitor: Path) -> None:
    """After ``pause``; QMPError."""
    asyncio.run(_execute(str(monitor), "cont"))


def hold_disk(monitor: Path, device: str, iops: int) -> None:
    """So many operations a second from now on, 0: as many as it can; QMPError."""
    rates = dict.fromkeys(("bps", "bps_rd", "bps_wr", "iops_rd", "iops_wr"), 0)
    asyncio.run(_execute(str(monitor), "block_set_io_throttle",
                         {"device": device, "iops": iops, **rates}))  # fmt: skip


async def _execute(
    monitor: str, command: str, arguments: Mapping[str, object] | None = None
) -> None:
    client = QMPClient()
    await asyncio.wait_for(client.connect(monitor), _WAIT_SECONDS)
    try:
        await asyncio.wait_for(client.execute(command, arguments), _WAIT_SECONDS)
    finally:
        await asyncio.wait_for(client.disconnect(), _WAIT_SECONDS)


async def _places(monitor: str) -> list[str]:
    client = QMPClient()
    await asyncio.wait_for(client.connect(monitor), _WAIT_SECONDS)
    lines = []
    try:
        for _ in range(_LOOKS):
            question = client.execute("human-monitor-command", _REGISTERS)
            text = str(await asyncio.wait_for(question, _WAIT_SECONDS))
            cpus = [f"CPU {cpu} at {at} ring {ring} halted {hlt}"
                    for cpu, at, ring, hlt in _PLACE.findall(text)]  # fmt: skip
            lines.append(f"silent: {', '.join(cpus)}")
            await asyncio.sleep(_PAUSE_SECONDS)
    finally:
        await asyncio.wait_for(client.disconnect(), _WAIT_SECONDS)
    return lines
