# SPDX-License-Identifier: Apache-2.0
"""``seawall gpu check``: can this very process use the devices that it was promised?

For a workload's own start, inside its container: it opens the control nodes and the devices, as
the workload will, and looks at nothing but its own /dev, environment and /proc/devices.
"""

import errno
import os
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Final

from seawall.accounts.devices.classes import CLASSES
from seawall.accounts.devices.own_view import (
    ClassPromise,
    Refusal,
    can_be_used,
    is_bare_all,
    paths_to_try,
    promises,
    refusals,
)
from seawall.cli import statuses
from seawall.cli.source_options import SLOT, TIMEOUT_SECONDS, seconds_of
from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.host.own_devices import try_each
from seawall.readings import char_devices, device_nodes
from seawall.readings.device_access import Tried
from seawall.views.terminal import plain

_OUTSIDE: Final = "from the node: seawall gpu"
_BY_IMAGE: Final = (
    "images of CUDA set {by} by themselves: for a run without a GPU set {variable}=void, or leave "
    "this check out"
)
_HELP: Final = """\
Ends with 0 when every device that was promised opens, or when none was
promised; 10 when one cannot be used; 11 when that could not be seen.
What counts as a promise: NVIDIA_VISIBLE_DEVICES with anything but void, none
or nothing, a control node in this /dev (of NVIDIA a device is enough), --need.
Images of CUDA set NVIDIA_VISIBLE_DEVICES=all by themselves, and whoever runs
this wants a GPU: with "all" and no node at all it ends with 10. For runs
without a GPU set NVIDIA_VISIBLE_DEVICES=void, or leave this check out."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of ``seawall gpu check`` to its parser."""
    parser.epilog = _HELP
    parser.add_argument(
        "--timeout", type=seconds_of, default=TIMEOUT_SECONDS, metavar="SECONDS",
        help="a driver that does not let a device be opened for so long: 11 (default %(default)g)",
    )  # fmt: skip
    parser.add_argument(
        "--need", action="append", default=[], choices=[one.name for one in CLASSES],
        help="fail where none was promised, too: CDI leaves no trace in the environment",
    )  # fmt: skip


def complete(arguments: Namespace) -> None:
    """A driver that hangs must not end with 0."""
    arguments.fail_on = "critical"


def run(arguments: Namespace) -> int:
    """0: it can; 10: it cannot, and one sentence; 11: that could not be seen."""
    host = LiveHost("/", slot=SLOT)
    nodes = device_nodes.read(host)
    drivers = char_devices.read(host)
    if isinstance(nodes, Unread):
        return _blind(nodes)
    found = promises(os.environ, nodes.by_path, arguments.need)
    if not found:
        names = "|".join(one.name for one in CLASSES)
        _say(f"Nothing here was promised a device that can be seen; --need {names} if one was.")
        return 0
    done = []
    for promise in found:
        tried = _tried(paths_to_try(promise, nodes.by_path))
        known = None if isinstance(drivers, Unread) else drivers
        if refused := refusals(promise, tried, known):
            _say(_sentence(promise, refused, by_image=is_bare_all(promise, nodes.by_path)))
            return statuses.FIRES
        opened = sum(map(can_be_used, tried))
        done.append(f"{promise.device_class.name}: {opened} of {len(tried)} devices opened")
    _say(f"{'; '.join(done)}.")
    return 0


def _tried(paths: Sequence[str]) -> list[Tried]:
    return [Tried(*row) for row in try_each(paths, opens=True, slot=SLOT)]


def _sentence(promise: ClassPromise, refused: Sequence[Refusal], *, by_image: bool) -> str:
    first = refused[0]
    more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
    name = errno.errorcode.get(first.errno, str(first.errno))
    variable = promise.device_class.visible
    image = f"{_BY_IMAGE.format(by=promise.by, variable=variable)}; " if by_image else ""
    return (
        f"{first.path}{more}: {os.strerror(first.errno)} ({name}), promised by {promise.by}: "
        f"{first.words} [{first.mode}]; {image}{_OUTSIDE}"
    )


def _blind(unread: Unread) -> int:
    _say(f"{unread.path}: {unread.detail or unread.why}: whether devices can be used is not known.")
    return statuses.BLIND


def _say(words: str) -> None:
    print(plain(words), flush=True)
