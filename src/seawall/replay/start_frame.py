# SPDX-License-Identifier: Apache-2.0
"""The ``start`` frame: whose ticks follow, and with which settings it judged."""

from typing import Any, Final, NamedTuple, get_type_hints

from seawall.guard.settings import Settings
from seawall.host.host import JSON
from seawall.problems import BundleProblem
from seawall.replay.typed_codec import codec_of, read_float, short_repr

_HINTS: Final = get_type_hints(Settings)


class StartFrame(NamedTuple):
    """What is needed to judge as it did."""

    settings: Settings
    own_cgroup: str
    last_decision: str
    pid: int
    """Of the recorder."""
    began_unix: float
    tool_version: str
    host: str
    kernel: str
    notes: tuple[str, ...]
    """What of its settings this version does not know, or knows and it did not."""

    def is_same_recorder(self, other: "StartFrame | None") -> bool:
        """Written by the same process; a guard that begins has a new one."""
        return other is not None and (self.pid, self.began_unix) == (other.pid, other.began_unix)


def start_of(body: dict[str, JSON]) -> StartFrame:
    """BundleProblem when it is not one."""
    try:
        settings, notes = _settings(body.get("settings"))
        return StartFrame(
            settings=settings,
            own_cgroup=_text(body, "own_cgroup"),
            last_decision=_text(body, "last_decision"),
            pid=codec_of(int).read(body.get("pid", 0)),
            began_unix=read_float(body.get("began_unix", 0.0)),
            tool_version=_text(body, "tool_version"),
            host=_text(body, "host"),
            kernel=_text(body, "kernel"),
            notes=notes,
        )
    except (ValueError, RecursionError) as error:
        raise BundleProblem(f"a start frame in the black box: {error}") from error


_TOLD_ONLY: Final = frozenset(
    {
        "run_on_decision",
        "job_output",
        "job_comment",
        "job_end_whole",
        "slurm_commands",
        "slurm_conf",
        "user_slices",
    }
)
"""Keys that came since the first version and decide nothing: a judgement is the same without."""


def _text(body: dict[str, JSON], name: str) -> str:
    found = body.get(name)
    return "" if found is None else str(codec_of(str).read(found))


def _settings(told: JSON) -> tuple[Settings, tuple[str, ...]]:
    """Of another version too: a key that is missing has its default, one that is new is named."""
    if not isinstance(told, dict) or len(told) > 10 * len(_HINTS):
        raise ValueError(f"expected settings, found {short_repr(told)}")
    found: dict[str, Any] = {}
    for name, value in told.items():
        if name in _HINTS:
            found[name] = codec_of(_HINTS[name]).read(value)
    odd = sorted(str(name) for name in (told.keys() ^ _HINTS.keys()) - _TOLD_ONLY)
    words = f"settings of another version: {', '.join(odd)[:200]}" if odd else ""
    return Settings(**found), (words,) if words else ()
