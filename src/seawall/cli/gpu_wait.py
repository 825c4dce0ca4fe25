# SPDX-License-Identifier: Apache-2.0
"""``seawall gpu wait``: until every control node that the loaded modules imply is there.

For an init container of a device plugin, or ExecStartPre of a runtime: whoever starts before the
nodes are there hands out too few devices for as long as it lives.
"""

import os
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from typing import Final

from seawall.accounts.devices.classes import CLASSES, load_of, majors_now
from seawall.accounts.devices.host_nodes import host_nodes
from seawall.accounts.devices.layers import HostNode
from seawall.cli import statuses
from seawall.cli.source_options import SLOT, seconds_of
from seawall.host.control_nodes import PathNode, look, make
from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.problems import UsageProblem
from seawall.readings import char_devices
from seawall.readings.char_devices import CharDevices
from seawall.readings.device_nodes import DeviceNode, DeviceNodes
from seawall.views.gpu_words import node_words
from seawall.views.terminal import plain
from seawall.words import duration, first

TIMEOUT_SECONDS: Final = 60.0
EVERY_SECONDS: Final = 0.2
_PATHS: Final = tuple(control.path for one in CLASSES for control in one.controls)
_NAMES_SHOWN: Final = 6


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of ``seawall gpu wait`` to its parser."""
    parser.add_argument(
        "--timeout", type=seconds_of, default=TIMEOUT_SECONDS, metavar="SECONDS",
        help="end with 10 and what is missing after this long (default %(default)g)",
    )  # fmt: skip
    parser.add_argument(
        "--create", action="store_true",
        help="make what is missing, with the mode and owner that the driver is set to (666 root, "
        "/dev/kfd 660 render; root); a node with an old number is replaced and keeps both, "
        "a file that is no device node never",
    )  # fmt: skip
    parser.add_argument(
        "--need", action="append", default=[], metavar="DRIVER",
        help="wait until this one is loaded too, as /proc/devices calls it (nvidia-uvm); without "
        "it a module that is not loaded implies nothing",
    )  # fmt: skip
    parser.add_argument(
        "--root", metavar="DIR", default="/",
        help="where the host's / is mounted, or a folder with its dev (default /)",
    )  # fmt: skip


def complete(arguments: Namespace) -> None:
    """A question that hangs must not end with 0."""
    arguments.fail_on = "critical"


def run(arguments: Namespace) -> int:
    """0: all there; 10: not; 11: it could not be seen."""
    if not os.path.isdir(os.path.join(arguments.root, "dev")):
        raise UsageProblem(f"--root {arguments.root}: no dev folder in it")
    waiting = _Waiting(arguments)
    began = time.monotonic()
    while True:
        wanting = waiting.look()
        seconds = time.monotonic() - began
        if wanting is None:
            return statuses.BLIND
        if not wanting:
            _say(waiting.all_there(seconds))
            return 0
        if seconds + EVERY_SECONDS > arguments.timeout:
            _say(f"After {duration(seconds)}: {'; '.join(wanting)}.")
            return statuses.FIRES
        time.sleep(EVERY_SECONDS)


class _Waiting:
    """The looks, and what was made on the way."""

    def __init__(self, arguments: Namespace) -> None:
        self._arguments = arguments
        # Not namespaced: where the host's proc is not mounted, one's own says the same.
        has_proc = os.path.exists(os.path.join(arguments.root, char_devices.PATH[1:]))
        self._host = LiveHost(arguments.root if has_proc else "/")
        self._nodes: tuple[HostNode, ...] = ()
        self._tried: dict[tuple[str, int], str] = {}
        """(path, major) -> why it could not be made."""

    def look(self) -> list[str] | None:
        """What is still missing, in words; None when that cannot be told."""
        drivers = char_devices.read(self._host)
        if isinstance(drivers, Unread):
            _say(f"{drivers.path}: {drivers.detail or drivers.why}")
            return None
        seen = self._look()
        if seen is None:
            return None
        self._nodes = host_nodes(drivers, DeviceNodes(_nodes(seen), {}, 0))
        missing = [node for node in self._nodes if not node.is_there]
        if self._arguments.create and missing and self._make(missing):
            return self.look()
        return [
            *(_not_loaded(name) for name in _absent(self._arguments.need, drivers)),
            *(self._words(node, seen.get(node.path)) for node in missing),
        ]

    def _look(self) -> dict[str, PathNode] | None:
        root = self._arguments.root
        SLOT.write(f"{root.rstrip('/')}/dev")
        try:
            return look(root, _PATHS)
        except OSError as error:
            _say(f"{error.filename}: {error.strerror}")
            return None
        finally:
            SLOT.clear()

    def _make(self, missing: Sequence[HostNode]) -> bool:
        """Whether any was made; each is tried once."""
        is_made = False
        for node in missing:
            key = node.path, node.major
            if key in self._tried:
                continue
            self._tried[key] = "made, and gone again"
            try:
                _say(make(self._arguments.root, node.path, node.major, node.minor))
                is_made = True
            except OSError as error:
                self._tried[key] = error.strerror or "refused"
        return is_made

    def _words(self, node: HostNode, seen: PathNode | None) -> str:
        words = node_words(node)
        if seen is not None and seen.kind == "other":
            words = f"{node.path} is there and is no device node; {node.driver} has no other"
        tried = self._tried.get((node.path, node.major))
        return words if tried is None else f"{words} (--create: {tried})"

    def all_there(self, seconds: float) -> str:
        """The last sentence, when nothing is missing."""
        if not self._nodes:
            return "No loaded module implies a control node: nothing to wait for."
        drivers = list(dict.fromkeys(node.driver for node in self._nodes))
        words = (
            f"{len(self._nodes)} control nodes of {first(drivers, _NAMES_SHOWN)} are there"
            f" ({duration(seconds)})."
        )
        return words + _idle_note(drivers)


def _idle_note(drivers: Sequence[str]) -> str:
    """A driver without its companion implies nothing of it, and CUDA needs it all the same."""
    notes = ""
    for one in CLASSES:
        paths = {c.path: c for c in one.controls if c.is_needed}
        if any(set(c.drivers) & set(drivers) for c in paths.values()):
            for control in paths.values():
                if not set(control.drivers) & set(drivers):
                    notes += (
                        f" {control.drivers[0]} is not loaded, so {control.path} was not waited"
                        f" for: --need {control.drivers[0]}"
                    )
    return notes + ("." if notes else "")


def _nodes(seen: Mapping[str, PathNode]) -> dict[str, DeviceNode]:
    return {
        path: DeviceNode(path, "c" if one.kind == "c" else "b", *one[1:])
        for path, one in seen.items()
        if one.kind != "other"
    }


def _absent(needed: Sequence[str], drivers: CharDevices) -> list[str]:
    """``nvidia`` calls itself ``nvidia-frontend`` before driver 550."""
    return [name for name in needed if not majors_now(drivers, _names_of(name))]


def _names_of(name: str) -> tuple[str, ...]:
    controls = [control for one in CLASSES for control in one.controls]
    return next((one.drivers for one in controls if name in one.drivers), (name,))


def _not_loaded(name: str) -> str:
    how = load_of(name) or f"modprobe {name.replace('-', '_')}"
    return f"{name} is not in /proc/devices: its module is not loaded: {how}"


def _say(words: str) -> None:
    print(plain(words), flush=True)
