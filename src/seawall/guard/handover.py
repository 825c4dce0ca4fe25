# SPDX-License-Identifier: Apache-2.0
"""The handover from the launcher to the guard, as one JSON text: plain values, parsed once.

The guard's process holds this module, so it imports nothing that it could do without.
"""

import json
import os
from typing import Any, NamedTuple

from seawall.actions.orders import Mounts
from seawall.guard.settings import START_ONLY, Settings, first_name
from seawall.proc.memory_file import memory_file

HANDED_VERSION = 1
REPLACED = "the files of seawall were replaced under this guard: restart it"
"""Whatever this version does not understand then is another one's."""
_CHOICES = {"mode": ("observe", "enforce"), "over_limit": ("report", "kill", "clamp")}
SETTINGS_MOST_BYTES = 32_000
"""Of settings as JSON, quoted once more: a reload has them in an answer of the aide, which
(``tell/errands.py``) has room for 32 KiB.
"""


class GuardHandover(NamedTuple):
    """Everything that the guard is started with.  Descriptors are open and inherited."""

    settings: Settings
    config_path: str
    """Of the file that was read, or would be: for reload."""
    mounts: Mounts
    own_cgroup: str
    """Below the mount point of the tree that counts memory."""
    boot_id: str
    folder: str
    """Where status and decisions go: ``/run/seawall``, of a second guard a folder in it."""
    lock_fd: int
    """The lock file in ``folder``; the lock lives as long as this is open."""
    other_guard_pid: int
    """Of the guard that has the folder above: this one observes.  0: there is none."""
    watcher_fd: int
    """The guard's end of the pair; -1: there is no watcher."""
    watcher_pid: int
    others: tuple[str, ...]
    """What the status says of other guards until the aide has looked for them."""
    is_afresh: bool = False
    """It takes the place of a guard that had lost something which only a new start brings."""
    recorder_fd: int = -1
    """The guard's end of the recorder's pair; -1: there is no recorder."""
    recorder_pid: int = 0


def to_json(settings: Settings) -> str:
    """The settings as one line."""
    return json.dumps(settings._asdict())


def quoted_bytes(settings: Settings) -> int:
    """How long they are where JSON stands in JSON; at most SETTINGS_MOST_BYTES are right."""
    return len(json.dumps(to_json(settings)))


def from_json(text: str) -> Settings:
    """The settings in ``text``, every field there and of its default's type; ValueError."""
    found = json.loads(text)
    if not isinstance(found, dict) or set(found) != set(Settings._fields):
        raise ValueError("not the settings of this version")
    return Settings(**{name: _like(name, found[name]) for name in Settings._fields})


def known_settings(text: str, now: Settings) -> tuple[Settings, str]:
    """Of settings that another version may have read those that are known here, the others as they
    are ``now``; and which those are and why, or empty: all are known.  ValueError: none of it is.

    Half understood it may say less, but never turns killing on.
    """
    found, values = json.loads(text), now._asdict()
    if not isinstance(found, dict):
        raise ValueError("not the settings of any version")  # noqa: TRY004 - of a file
    left = [str(name)[:40] for name in found if name not in values]
    for name in Settings._fields:
        try:
            values[name] = _like(name, found[name])
        except (ValueError, KeyError):
            left.append(name)
    settings = Settings(**values)
    if not left:
        return settings, ""
    is_armed = settings.mode != "observe" and now.mode == "observe"
    if is_armed or (settings.rescue and not now.rescue):
        raise ValueError(f"{', '.join(left[:8])}: of another version; {REPLACED}")
    return settings, f"not taken: {', '.join(left[:8])}; {REPLACED}"


def _like(name: str, value: object) -> Any:
    """``value`` as the field wants it: JSON has lists for tuples, and 2 for 2.0."""
    default = Settings._field_defaults[name]
    if isinstance(default, tuple):
        if isinstance(value, list) and all(isinstance(word, str) for word in value):
            return tuple(value)
    elif isinstance(default, float):
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    elif type(value) is type(default) and value in _CHOICES.get(name, (value,)):
        return value
    raise ValueError(f"{name}: {value!r} is not of its type")


def handover_json(handed: GuardHandover) -> str:
    """The whole as one line."""
    whole = handed._asdict()
    whole["settings"] = handed.settings._asdict()
    whole["mounts"] = handed.mounts._asdict()
    return json.dumps({"version": HANDED_VERSION, **whole})


def handover_from_json(text: str) -> GuardHandover:
    """What ``handover_json`` wrote; ValueError when it is of another version."""
    whole = json.loads(text)
    if whole.pop("version", None) != HANDED_VERSION:
        raise ValueError("handed over by another version")
    whole["settings"] = from_json(json.dumps(whole["settings"]))
    whole["mounts"] = Mounts(**whole["mounts"])
    whole["others"] = tuple(whole["others"])
    return GuardHandover(**whole)


def settings_descriptor(settings: Settings) -> int:
    """A descriptor that outlives exec and holds them."""
    fd = text_in_memory("seawall-settings", to_json(settings))
    os.set_inheritable(fd, True)
    return fd


def text_in_memory(name: str, text: str) -> int:
    """A descriptor from which whoever gets it reads ``text``; it ends at an exec."""
    fd = memory_file(name)
    os.write(fd, text.encode())
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def take_settings(fd: int) -> Settings:
    """What ``kept`` holds; it is closed.  ValueError, OSError."""
    with os.fdopen(fd, "rb") as file:
        return from_json(file.read().decode())


def take_handover(fd: int) -> GuardHandover:
    """From the descriptor that the launcher left open; it is closed."""
    with os.fdopen(fd, "rb") as file:
        return handover_from_json(file.read().decode())


def reloaded_settings(text: str, handed: GuardHandover, now: Settings | None = None) -> Settings:
    """Settings that were read anew, for a guard that runs; ValueError when they are unusable.

    What is read at the start only stays as it was; so does what another version has read and this
    one does not know (``known``), as it is ``now``.  A second guard observes, whatever the file
    says.
    """
    old = {field: getattr(handed.settings, field) for field in START_ONLY}
    settings = known_settings(text, now or handed.settings)[0]._replace(**old)
    named = None if settings.watch else first_name(settings)
    if named is not None:
        raise ValueError(
            f'{named[0]}: "{named[1]}" is a name, and this guard was started with watch = false, '
            "so nobody tells it the names of pods; start it anew"
        )
    return settings._replace(mode="observe") if handed.other_guard_pid else settings


def left_for_start(text: str, settings: Settings) -> str:
    """Which keys of ``text`` say what a guard that runs does not take: ``settings`` are in force.
    For the end of a sentence; empty: none.
    """
    found = known_settings(text, settings)[0]
    keys = [
        k for field, k in START_ONLY.items() if getattr(found, field) != getattr(settings, field)
    ]
    if not keys:
        return ""
    verb = "is" if len(keys) == 1 else "are"
    return f"; {', '.join(keys)} {verb} read at the start only: as before until it is started anew"
