# SPDX-License-Identifier: Apache-2.0
"""What an OCI config.json and runc's state.json say about devices.  Pure.

OCI runtime-spec config.md and config-linux.md ("Devices", "Allowed Device list").  runc keeps its
own form of both in state.json (libcontainer/configs): kinds are the numbers of the letters, -1 is
any, and its rules are the spec's with runc's defaults behind them.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from seawall.problems import ParseProblem
from seawall.readings.device_rule import KINDS, NUMBER_MOST, DeviceRule, Kind, access_of

LIMIT_BYTES: Final = 2 << 20
WORD_MOST: Final = 4096
ENVIRONMENT_NAME: Final = re.compile(
    r"(?:(?:NVIDIA|CUDA|ROCR?|HIP|HSA|GPU|AMD|ZE|ONEAPI)_[A-Z0-9_]+|PASS_DEVICE_SPECS)\Z"
)
"""The same as the sieve keeps (host/sieve.py)."""
CDI_ANNOTATION: Final = "cdi.k8s.io/"
_EARLY_HOOKS: Final = ("prestart", "createRuntime", "createContainer", "startContainer")
_RUNC_KINDS: Final = {ord(letter): letter for letter in KINDS}
_BINDS: Final = ("bind", "rbind")


class SpecDevice(NamedTuple):
    """A node that the runtime makes in the container (``linux.devices``)."""

    path: str
    kind: Kind
    major: int
    minor: int
    mode: int | None
    uid: int | None
    gid: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OciDevices:
    """What one file tells; what it is silent about is empty."""

    devices: tuple[SpecDevice, ...] = ()
    rules: tuple[DeviceRule, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    cdi_names: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    device_mounts: tuple[str, ...] = ()
    cgroups_path: str | None = None
    bundle: str | None = None
    """The folder of the config that runc was started with; its state.json alone tells it."""


def parse_config(data: bytes) -> OciDevices:
    """An OCI config.json.  ParseProblem when something about devices in it is malformed."""
    return config_of(object_of(data))


def config_of(value: Any) -> OciDevices:
    """The same of one that is no text any more."""
    document = _object(value, "a config")
    linux = _object(document.get("linux"), "linux")
    process = _object(document.get("process"), "process")
    annotations = _object(document.get("annotations"), "annotations")
    resources = _object(linux.get("resources"), "linux.resources")
    return OciDevices(
        devices=tuple(
            _device(row, KINDS.get(str(row.get("type"))), "fileMode")
            for row in rows_of(linux.get("devices"), "linux.devices")
            if row.get("type") != "p"  # a FIFO
        ),
        rules=tuple(
            _rule(row, "access", row.get("type", "a"))
            for row in rows_of(resources.get("devices"), "linux.resources.devices")
        ),
        environment=environment_of(process.get("env")),
        cdi_names=tuple(dict.fromkeys(_cdi_names(annotations))),
        hooks=tuple(_hooks(_object(document.get("hooks"), "hooks"))),
        device_mounts=tuple(_device_mounts(document.get("mounts"))),
        cgroups_path=_word_or_none(linux.get("cgroupsPath")),
    )


def parse_state(data: bytes) -> OciDevices:
    """A state.json of runc, which has no environment and no annotations; its ``devices`` include
    runc's defaults.
    """
    config = _object(object_of(data).get("config"), "config")
    cgroups = _object(config.get("cgroups"), "config.cgroups")
    return OciDevices(
        devices=tuple(
            _device(row, KINDS.get(_letter(row)), "file_mode")
            for row in rows_of(config.get("devices"), "config.devices")
            if row.get("type") != ord("p")
        ),
        rules=tuple(
            _rule(row, "permissions", _letter(row))
            for row in rows_of(cgroups.get("devices"), "config.cgroups.devices")
        ),
        hooks=tuple(_hooks(_object(config.get("Hooks"), "config.Hooks"))),
        bundle=_bundle(config.get("labels")),
    )


def _bundle(labels: Any) -> str | None:
    """``bundle=/a/folder`` of its labels; None for what is no plain path."""
    for word in labels if isinstance(labels, list) else ():
        if isinstance(word, str) and word.startswith("bundle=/") and len(word) <= WORD_MOST:
            path = word.removeprefix("bundle=").rstrip("/")
            return None if ".." in path.split("/") or "\0" in path else path or None
    return None


def object_of(data: bytes) -> dict[str, Any]:
    """The JSON object that a file is."""
    if len(data) > LIMIT_BYTES:
        raise ParseProblem(0, f"at most {LIMIT_BYTES} bytes", data)
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ParseProblem(0, "a JSON object", data) from error
    if not isinstance(document, dict):
        raise ParseProblem(0, "a JSON object", data)
    return document


def rows_of(value: Any, what: str) -> list[dict[str, Any]]:
    """A list of objects; none where there is nothing."""
    if not isinstance(value, list | None) or not all(isinstance(row, dict) for row in value or ()):
        raise ParseProblem(0, f"a list of objects for {what}")
    return value or []


def environment_of(words: Any) -> dict[str, str]:
    """Of ``NAME=value`` words those of GPU stacks; the last of a name wins, as in runc."""
    if not isinstance(words, list | None):
        raise ParseProblem(0, "a list of words for the environment")
    pairs = (word.partition("=") for word in words or () if isinstance(word, str))
    return {name: value for name, _, value in pairs if ENVIRONMENT_NAME.match(name)}


def word_of(value: Any, what: str) -> str:
    """Text of bounded length."""
    if not isinstance(value, str) or not 0 < len(value) <= WORD_MOST:
        raise ParseProblem(0, f"words for {what}")
    return value


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict | None):
        raise ParseProblem(0, f"an object for {what}")
    return value or {}


def _word_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= WORD_MOST else None


def _letter(row: Mapping[str, Any]) -> str:
    """The kind of runc's rule: the number of its letter."""
    kind = row.get("type")
    return _RUNC_KINDS.get(kind, "") if type(kind) is int else ""


def _device(row: Mapping[str, Any], kind: Kind | None, mode_key: str) -> SpecDevice:
    major, minor = (_number(row.get(key)) for key in ("major", "minor"))
    if kind is None or major is None or minor is None:
        raise ParseProblem(0, "type, major and minor for a device")
    mode, uid, gid = (_number(row.get(key)) for key in (mode_key, "uid", "gid"))
    mode = None if mode is None else mode & 0o7777
    return SpecDevice(word_of(row.get("path"), "path"), kind, major, minor, mode, uid, gid)


def _rule(row: Mapping[str, Any], access_key: str, letter: object) -> DeviceRule:
    access = access_of(row.get(access_key))
    if not isinstance(letter, str) or letter not in KINDS or access is None:
        raise ParseProblem(0, "type and access for a device rule")
    major, minor = (_number(row.get(key)) for key in ("major", "minor"))
    return DeviceRule(KINDS[letter], major, minor, access, row.get("allow") is True)


def _number(value: Any) -> int | None:
    """None: left out, or -1 for any."""
    if value is None or value == -1:
        return None
    if type(value) is not int or not 0 <= value <= NUMBER_MOST:
        raise ParseProblem(0, "a number of a device")
    return value


def _cdi_names(annotations: Mapping[str, Any]) -> Iterator[str]:
    for key, value in annotations.items():
        if key.startswith(CDI_ANNOTATION) and isinstance(value, str):
            yield from (name[:WORD_MOST] for name in value.split(",") if name)


def _hooks(hooks: Mapping[str, Any]) -> Iterator[str]:
    for when in _EARLY_HOOKS:
        for row in rows_of(hooks.get(when), f"hooks.{when}"):
            if isinstance(row.get("path"), str):
                yield row["path"][:WORD_MOST]


def _device_mounts(mounts: Any) -> Iterator[str]:
    for row in rows_of(mounts, "mounts"):
        target, options = row.get("destination"), row.get("options")
        is_bind = row.get("type") == "bind" or (
            isinstance(options, list) and any(word in _BINDS for word in options)
        )
        if is_bind and isinstance(target, str) and target.startswith("/dev/"):
            yield target[:WORD_MOST]
