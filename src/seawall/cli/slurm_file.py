# SPDX-License-Identifier: Apache-2.0
"""/etc/seawall/slurm.toml: what ``seawall check --slurm`` judges, and for what a node is drained.

::

    [checks]                   # report (the default), drain or off
    processes = "drain"
    gpu = "drain"
    stuck = "off"

    [wanted]                   # of every node
    mounts = ["/home", "/scratch lustre"]

    [[nodes]]                  # of these besides; later tables win
    names = "gpu[01-64]"
    gpus = 8

    [[commands]]               # a check of the site's own: status 0 is good
    name = "dcgm"
    run = ["/usr/local/sbin/check-dcgm"]

The file is the same on all nodes.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal, TypeAlias, cast

from seawall.accounts.drain_queue import NODES_MOST, SHARE, DrainLimits
from seawall.accounts.node_checks.wanted import WantedNode
from seawall.formats.host_list import hosts_of
from seawall.host.slurm_commands import FOLDERS
from seawall.problems import UsageProblem

PATH: Final = "/etc/seawall/slurm.toml"
RECORDS: Final = "/var/lib/seawall/slurm"
SECONDS: Final = 4.0
"""Of one question to slurmctld: those that go before a drain fit into a check's 60 s."""
Mode: TypeAlias = Literal["report", "drain", "off"]
MODES: Final = ("report", "drain", "off")
NEVER_DRAINED_FOR: Final = frozenset({"guard", "munge"})
"""Of the first jobs know nothing; without munge slurmctld cannot be told."""
_BYTES_MOST: Final = 1 << 20
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,31}\Z")
_HOSTS: Final = re.compile(r"[A-Za-z0-9_.\-\[\],]{1,4096}\Z")
_SECONDS_MOST: Final = 20.0


@dataclass(frozen=True, slots=True)
class SiteCommand:
    """A check of the site's own."""

    name: str
    words: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class SlurmSettings:
    """The file for one node."""

    modes: Mapping[str, Mode] = field(default_factory=dict)
    wanted: WantedNode = field(default_factory=WantedNode)
    commands: tuple[SiteCommand, ...] = ()
    limits: DrainLimits = field(default_factory=DrainLimits)
    folders: str = FOLDERS
    conf: str = ""
    """slurm.conf, where it is not the usual one: slurmd gives its programs no SLURM_CONF."""
    records: str = RECORDS
    evidence: str = ""
    """Folder that the nodes share, for ``seawall agent --slurm``; empty: none."""
    seconds: float = SECONDS
    """The deadline of one question to slurmctld."""

    def mode(self, name: str) -> Mode:
        """Of a check."""
        return self.modes.get(name, "report")


def host_name() -> str:
    """The machine's, as Slurm names a node: without the domain (slurm.conf, NodeName)."""
    return os.uname().nodename.partition(".")[0]


def load(path: str | None, node: str, checks: Sequence[str]) -> SlurmSettings:
    """For that node; the defaults where no file was named and none is there; UsageProblem."""
    try:
        with open(path or PATH, "rb") as file:
            _check_hands(os.fstat(file.fileno()), path or PATH)
            text = file.read(_BYTES_MOST)
    except OSError as error:
        if path is None and isinstance(error, FileNotFoundError):
            return SlurmSettings()
        raise UsageProblem(f"{path or PATH}: {error.strerror}") from error
    return parse(text, path or PATH, node, checks)


def _check_hands(about: os.stat_result, path: str) -> None:
    """It names programs that root runs."""
    if about.st_uid not in {0, os.geteuid()} or about.st_mode & 0o022:
        raise UsageProblem(
            f"{path}: others may write this file, and it can drain nodes and run programs;"
            f" mend with: chown root {path} && chmod go-w {path}"
        )


def parse(text: bytes, path: str, node: str, checks: Sequence[str]) -> SlurmSettings:
    """UsageProblem with the place of anything unknown: a misspelt key must not switch one off."""
    from seawall.formats import toml  # noqa: PLC0415 - slow to import, and many have no file

    try:
        document = toml.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise UsageProblem(f"{path}: not TOML: {error}") from error
    _only(document, {"checks", "wanted", "nodes", "commands", "brake", "slurm"}, path)
    commands = tuple(_command(row, path, checks) for row in _tables(document, "commands", path))
    known = {*checks, *(command.name for command in commands)}
    wanted = _wanted(_table(document, "wanted", path), f"{path}: [wanted]")
    for row in _tables(document, "nodes", path):
        more = _wanted({key: row[key] for key in row if key != "names"}, f"{path}: [[nodes]]")
        if _is_meant(row.get("names"), node, path):
            wanted |= more
    slurm = _table(document, "slurm", path)
    _only(slurm, {"commands", "conf", "evidence", "records", "seconds"}, f"{path}: [slurm]")
    return SlurmSettings(
        modes=_modes(_table(document, "checks", path), path, known),
        wanted=WantedNode(**wanted),
        commands=commands,
        limits=_limits(_table(document, "brake", path), path),
        folders=_path(slurm, "commands", FOLDERS, path),
        conf=_path(slurm, "conf", "", path),
        records=_path(slurm, "records", RECORDS, path),
        evidence=_path(slurm, "evidence", "", path),
        seconds=_seconds(slurm.get("seconds", SECONDS), f"{path}: [slurm]"),
    )


def _is_meant(names: object, node: str, path: str) -> bool:
    try:
        if isinstance(names, str) and _HOSTS.match(names):
            return name_matches(names, node)
    except ValueError:
        pass
    raise UsageProblem(f'{path}: [[nodes]] names: expected e.g. "gpu[01-64],login1"')


def name_matches(pattern: str, name: str) -> bool:
    """Whether a node's name is in ``gpu[01-64,70],login1``; ValueError: it is no such list."""
    return name in hosts_of(pattern)


# --- tables ---------------------------------------------------------------------------------


def _modes(table: Mapping[str, Any], path: str, known: set[str]) -> dict[str, Mode]:
    for name, mode in table.items():
        if name not in known:
            raise UsageProblem(
                f"{path}: [checks] {name}: no such check; {', '.join(sorted(known))}"
            )
        if mode not in MODES:
            raise UsageProblem(f"{path}: [checks] {name}: expected report, drain or off")
        if mode == "drain" and name in NEVER_DRAINED_FOR:
            raise UsageProblem(f"{path}: [checks] {name}: a node is not drained for that")
    return {name: cast("Mode", mode) for name, mode in table.items()}


def _wanted(table: Mapping[str, Any], place: str) -> dict[str, Any]:
    kinds = {one.name: str(one.type) for one in fields(WantedNode)}
    found: dict[str, Any] = {}
    for name, value in table.items():
        if name not in kinds:
            raise UsageProblem(f"{place} {name}: no such key; {', '.join(kinds)}")
        found[name] = _value(kinds[name], value, f"{place} {name}")
    return found


def _value(kind: str, value: object, place: str) -> object:
    if "tuple" in kind:
        if isinstance(value, list) and all(isinstance(one, str) and one for one in value):
            return tuple(value)
        raise UsageProblem(f"{place}: expected a list of words")
    if "Mapping" in kind:
        if isinstance(value, dict) and all(_is_percent(one) for one in value.values()):
            return value
        raise UsageProblem(f'{place}: expected {{ "/tmp" = 5 }}, percent')
    if "bool" in kind:
        if isinstance(value, bool):
            return value
        raise UsageProblem(f"{place}: expected true or false")
    if "int" in kind:
        if type(value) is int and value >= 0:
            return value
        raise UsageProblem(f"{place}: expected a whole number")
    if isinstance(value, str):
        return value
    raise UsageProblem(f"{place}: expected a word")


def _is_percent(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 100


def _command(row: Mapping[str, Any], path: str, checks: Sequence[str]) -> SiteCommand:
    place = f"{path}: [[commands]]"
    _only(row, {"name", "run", "seconds"}, place)
    name, words, seconds = row.get("name"), row.get("run"), row.get("seconds", 5)
    if not isinstance(name, str) or not _NAME.match(name) or name in checks:
        raise UsageProblem(f"{place} name: expected a word of small letters that no check has")
    if not isinstance(words, list) or not words or not all(isinstance(one, str) for one in words):
        raise UsageProblem(f'{place} run: expected ["/path/of/program", "word"]')
    if not str(words[0]).startswith("/"):
        raise UsageProblem(f"{place} run: expected a whole path, found {words[0]}")
    return SiteCommand(name, tuple(words), _seconds(seconds, place))


def _seconds(value: object, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageProblem(f"{place} seconds: expected a number")
    if not 0 < value <= _SECONDS_MOST:
        raise UsageProblem(f"{place} seconds: expected at most {_SECONDS_MOST:.0f}")
    return float(value)


def _limits(table: Mapping[str, Any], path: str) -> DrainLimits:
    _only(table, {"share", "nodes"}, f"{path}: [brake]")
    share, most = table.get("share", SHARE), table.get("nodes", NODES_MOST)
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= SHARE:
        raise UsageProblem(f"{path}: [brake] share: expected at most {SHARE}")
    if type(most) is not int or not 1 <= most <= NODES_MOST:
        raise UsageProblem(f"{path}: [brake] nodes: expected 1 to {NODES_MOST}")
    return DrainLimits(float(share), most)


def _path(table: Mapping[str, Any], name: str, usual: str, path: str) -> str:
    value = table.get(name, usual)
    if not isinstance(value, str) or not (value.startswith("/") or value == usual):
        raise UsageProblem(f"{path}: [slurm] {name}: expected a whole path")
    return value


def _table(document: Mapping[str, Any], name: str, path: str) -> Mapping[str, Any]:
    value = document.get(name, {})
    if not isinstance(value, dict):
        raise UsageProblem(f"{path}: {name}: expected a table [{name}]")
    return value


def _tables(document: Mapping[str, Any], name: str, path: str) -> list[Mapping[str, Any]]:
    value = document.get(name, [])
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise UsageProblem(f"{path}: {name}: expected tables [[{name}]]")
    return value


def _only(table: Mapping[str, Any], known: set[str], place: str) -> None:
    unknown = set(table) - known
    if unknown:
        raise UsageProblem(f"{place} {min(unknown)}: no such key; {', '.join(sorted(known))}")
