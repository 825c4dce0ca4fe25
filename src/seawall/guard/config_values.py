# SPDX-License-Identifier: Apache-2.0
"""One value of ``guard.toml`` as its key wants it, or what is wrong with it."""

import ipaddress
import math
import re
import shlex
from collections.abc import Callable
from typing import Any, Final

from seawall.guard.keys import Key, Kind

_LIST_MOST: Final = 256
_TEXT_MOST: Final = 1024
_SIZE: Final = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,3}))? *(KiB|MiB|GiB|TiB)?")
_UNIT: Final = re.compile(r"\.(?:slice|service|scope)\Z")
_SHIFT: Final = {"KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}


class WrongValue(Exception):
    """What was found instead, in words."""


def value_of(key: Key, value: object) -> Any:
    """``value`` in the units of ``Settings``; WrongValue."""
    return _READERS[key.kind](key, value)


def value_text(value: object) -> str:
    """As a person wrote it, cut."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a section"
    try:
        text = f'"{value}"' if isinstance(value, str) else f"{value}"
    except ValueError:  # Python writes no more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= 60 else f"{text[:58]}.."


def _choice(key: Key, value: object) -> str:
    if not isinstance(value, str) or value not in key.choices:
        raise WrongValue(value_text(value))
    return value


def _truth(_key: Key, value: object) -> bool:
    if not isinstance(value, bool):
        raise WrongValue(value_text(value))
    return value


def _number(key: Key, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WrongValue(value_text(value))
    if isinstance(value, float) and math.isnan(value):
        raise WrongValue(value_text(value))
    _check_bounds(key, value, value_text(value))
    return float(value)  # in bounds, so it is no whole number that is too large for that


def _count(key: Key, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise WrongValue(value_text(value))
    _check_bounds(key, value, value_text(value))
    return value


def _size(key: Key, value: object) -> int:
    """Bytes as a number, or text with a binary unit."""
    if isinstance(value, str):
        match = _SIZE.fullmatch(value.strip())
        if match is None or (match[2] and not match[3]):
            raise WrongValue(value_text(value))
        scale = 1 << _SHIFT.get(match[3] or "", 0)
        part = match[2] or ""
        count = int(match[1]) * scale + (int(part) * scale // 10 ** len(part) if part else 0)
    elif isinstance(value, int) and not isinstance(value, bool):
        count = value
    else:
        raise WrongValue(value_text(value))
    _check_bounds(key, count, value_text(value))
    return count


def _check_bounds(key: Key, number: float, words: str) -> None:
    low, high = key.least, key.most
    if (low is not None and number < low) or (high is not None and number > high):
        raise WrongValue(words)


def _names(_key: Key, value: object) -> tuple[str, ...]:
    """Without a name that matches nothing, or everything by accident."""
    if not isinstance(value, list):
        raise WrongValue(value_text(value))
    if len(value) > _LIST_MOST:
        raise WrongValue(f"{len(value)} of them, more than {_LIST_MOST}")
    for word in value:
        if not isinstance(word, str) or not word.strip() or len(word) > _TEXT_MOST:
            raise WrongValue(f"{value_text(word)} in it")
        if "\0" in word:  # the guard could not even ask the kernel for such a path
            escaped = word.replace("\0", r"\u0000")
            raise WrongValue(f"{value_text(escaped)} in it, with a NUL")
        if word != word.strip():
            raise WrongValue(f"{value_text(word)} in it, with blanks around it")
        first, slash, _ = word.partition("/")
        if slash and _UNIT.search(first) and not word.startswith("unit:"):  # no namespace
            raise WrongValue(f'{value_text(word)} in it: a cgroup path begins with "/"')
    return tuple(dict.fromkeys(value))


def _cgroups(key: Key, value: object) -> tuple[str, ...]:
    """Whole paths as the kernel prints them: no ``..``, no ``*``, no slash at the end."""
    paths = _names(key, value)
    for path in paths:
        parts = path.split("/")[1:]
        is_plain = all(part not in ("", ".", "..") and "*" not in part for part in parts)
        if not path.startswith("/") or not (path == "/" or is_plain):
            raise WrongValue(f"{value_text(path)} in it")
    return paths


def _subtrees(key: Key, value: object) -> tuple[str, ...]:
    """The cgroup paths of a key that needs one at least; WrongValue for an empty list."""
    paths = _cgroups(key, value)
    if not paths:
        raise WrongValue("an empty list")
    return paths


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > _TEXT_MOST or not value.isprintable():
        raise WrongValue(value_text(value))
    return value


def _command(_key: Key, value: object) -> str:
    """Split as a shell would, run without one."""
    text = _text(value)
    try:
        words = shlex.split(text)
    except ValueError:
        raise WrongValue(f"{value_text(value)}, whose quotes do not end") from None
    if text and not (words and words[0].startswith("/")):
        raise WrongValue(value_text(value))
    return text


def _folder(_key: Key, value: object) -> str:
    text = _text(value)
    parts = text.split("/")[1:]
    if text and not (text.startswith("/") and all(part not in ("", ".", "..") for part in parts)):
        raise WrongValue(value_text(value))
    return text


def _textfile(_key: Key, value: object) -> str:
    text = _text(value)
    if text and not (text.startswith("/") and text.endswith(".prom")):
        raise WrongValue(value_text(value))
    return text


def _address(_key: Key, value: object) -> str:
    """Numbers only: a guard asks no name server while the node dies."""
    text = _text(value)
    host, colon, port = text.rpartition(":")
    if not text:
        return text
    is_port = port.isascii() and port.isdigit() and 0 < int(port) < 65536
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        version = ipaddress.ip_address(bare).version
    except ValueError:
        raise WrongValue(value_text(value)) from None
    if not colon or not is_port or (version == 6) != (bare != host):
        raise WrongValue(value_text(value))
    return text


_READERS: Final[dict[Kind, Callable[[Key, object], Any]]] = {
    "choice": _choice, "truth": _truth, "seconds": _number, "fraction": _number,
    "size": _size, "count": _count, "subtrees": _subtrees,
    "cgroups": _cgroups, "names": _names,
    "command": _command, "folder": _folder, "file": _folder, "textfile": _textfile,
    "address": _address,
}  # fmt: skip
