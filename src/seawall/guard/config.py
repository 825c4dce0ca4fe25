# SPDX-License-Identifier: Apache-2.0
"""``guard.toml`` into ``Settings``, or one sentence that says what is wrong and where.

Runs in a process that ends before the guard locks its memory (``seawall guard run``, and at
SIGHUP a child of the aide): tomllib is more than the guard may hold.  The file turns killing
on, so nobody but its owner may be able to write it.
"""

import difflib
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from seawall.formats import toml
from seawall.guard.config_values import WrongValue, value_of
from seawall.guard.config_watch import way_steps
from seawall.guard.handover import SETTINGS_MOST_BYTES, quoted_bytes, to_json
from seawall.guard.keys import BY_NAME
from seawall.guard.settings import Settings, first_name
from seawall.problems import UsageProblem

PATH: Final = "/etc/seawall/guard.toml"
VARIABLE: Final = "SEAWALL_CONFIG"
_BYTES_MOST: Final = 256 << 10


def chosen_path(flag: str | None, environ: Mapping[str, str] = os.environ) -> str:
    """Which file counts: ``--config``, then $SEAWALL_CONFIG, then /etc/seawall/guard.toml."""
    return flag or environ.get(VARIABLE) or PATH


def read(path: str = PATH) -> Settings:
    """The settings in the file; the defaults (observe) when there is no /etc/seawall/guard.toml.

    UsageProblem: not readable, writable by others, not TOML, an unknown key, a wrong value;
    or a file that somebody named is not there.
    """
    data = _content(path)
    return Settings() if data is None else parse(data, path)


def parse(data: bytes, path: str) -> Settings:
    """The settings in ``data``; ``path`` is what problems are reported under."""
    try:
        text = data.decode()
        document = toml.loads(text)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UsageProblem(f"{path}:{line}: expected UTF-8, found another encoding") from None
    except (toml.TOMLDecodeError, RecursionError, ValueError) as error:
        raise UsageProblem(_not_toml(path, str(error), data)) from None
    found: dict[str, Any] = {}
    for name, value in document.items():
        where = f"{path}:{_line_of(name, text)}: {name}"
        key = BY_NAME.get(name)
        if key is None:
            raise UsageProblem(f"{where}: {_unknown(name, value)}")
        try:
            found[key.field] = value_of(key, value)
        except WrongValue as wrong:
            raise UsageProblem(f"{where}: expected {key.expected}, found {wrong}") from None
    settings = Settings(**found)
    _check_together(settings, path, text)
    return settings


def _content(path: str) -> bytes | None:
    """None: the file that nobody has to have is not there."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        if path == PATH:
            return None
        raise UsageProblem(f"{path}: no such file") from None
    except OSError as error:
        raise UsageProblem(f"{path}: {error.strerror}") from error
    try:
        _check_owner(fd, path)
        data = os.read(fd, _BYTES_MOST + 1)
    finally:
        os.close(fd)
    if len(data) > _BYTES_MOST:
        raise UsageProblem(f"{path}: expected at most {_BYTES_MOST:,} bytes, found more")
    return data


def _check_owner(fd: int, path: str) -> None:
    """Neither the file nor anything on the way to it is in other hands."""
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        raise UsageProblem(f"{path}: expected a file")
    _check_hands(found, path, "others may write this file, and it can turn killing on")
    words = f"others may put another file in the place of {path}, and it can turn killing on"
    try:
        for place in dict.fromkeys(_way(path)):
            about = os.lstat(place)
            folder = place if stat.S_ISDIR(about.st_mode) else os.path.dirname(place)
            # As a ConfigMap is mounted: its folder is open to all and can be changed by none.
            if not os.statvfs(folder).f_flag & os.ST_RDONLY:
                _check_hands(about, place, words)
    except OSError as error:
        raise UsageProblem(f"{path}: on the way to it: {error.strerror}") from error


def _way(path: str) -> Iterator[str]:
    """Each folder in which the kernel takes a step to the file, and each link that it follows."""
    for folder, name in way_steps(path):
        yield folder
        if os.path.islink(step := os.path.join(folder, name)):
            yield step


def _check_hands(found: os.stat_result, path: str, words: str) -> None:
    """In a folder with the sticky bit others may put something, but replace nothing of ours."""
    mode, is_link = stat.S_IMODE(found.st_mode), stat.S_ISLNK(found.st_mode)
    is_sticky = stat.S_ISDIR(found.st_mode) and mode & stat.S_ISVTX
    if found.st_uid not in {0, os.geteuid()}:
        what = f"found owner {found.st_uid}"
    elif mode & 0o022 and not is_link and not is_sticky:
        what = f"found mode {mode:04o}"
    else:
        return
    mend = f"chown -h root {path}" if is_link else f"chown root {path} && chmod go-w {path}"
    raise UsageProblem(
        f"{path}: {words}: expected owner root and no write bit for group and others, {what}; "
        f"mend with: {mend}"
    )


def _not_toml(path: str, words: str, data: bytes) -> str:
    """The words of tomllib, with the line where a person looks for it."""
    words = words.replace("Cannot overwrite a value", "a key stands there twice")
    if words.endswith(" (at end of document)"):
        last = data.rstrip().count(b"\n") + 1
        return f"{path}:{last}: expected TOML: {words}"
    match = re.search(r" \(at line (\d+), column (\d+)\)\Z", words)
    if match is None:
        return f"{path}: expected TOML: {words}"
    return f"{path}:{match[1]}: expected TOML: {words[: match.start()]}, column {match[2]}"


def _line_of(name: str, text: str) -> int:
    """The line in which a key of the top level stands; 1 when it cannot be told."""
    wanted = re.compile(rf"""\s*\[?\s*["']?{re.escape(name)}["']?\s*[=\].]""")
    lines = text.splitlines()
    return next((n for n, line in enumerate(lines, start=1) if wanted.match(line)), 1)


def _unknown(name: str, value: object) -> str:
    if isinstance(value, dict) and (inner := next(iter(set(value) & set(BY_NAME)), None)):
        return f"no sections here: write {inner} = ... without [{name}] above it"
    near = difflib.get_close_matches(name, BY_NAME, n=1)
    return f"no such key{f'; did you mean {near[0]}?' if near else ''}"


def _check_together(settings: Settings, path: str, text: str) -> None:
    """What no key can know of itself."""
    if settings.tick_least_seconds > settings.tick_most_seconds:
        raise UsageProblem(
            f"{path}:{_line_of('tick_least_seconds', text)}: tick_least_seconds: expected at most "
            f"tick_most_seconds ({settings.tick_most_seconds:g}), "
            f"found {settings.tick_least_seconds:g}"
        )
    if settings.over_limit != "report" and not settings.over_limit_opt_in:
        raise UsageProblem(
            f"{path}:{_line_of('over_limit', text)}: over_limit: {settings.over_limit} holds only "
            "for whom over_limit_opt_in names, and it names nobody; expected "
            'over_limit_opt_in = ["NAMESPACE/*"] too'
        )
    if not settings.watch:
        _check_unnamed(settings, path, text)
    if (length := quoted_bytes(settings)) > SETTINGS_MOST_BYTES:
        raise UsageProblem(
            f"{path}: expected lists of names and paths that take at most {SETTINGS_MOST_BYTES:,} "
            f"bytes with all else, found {length:,}: a guard that runs could not read them anew; "
            'a word with "*" stands for many'
        )


def _check_unnamed(settings: Settings, path: str, text: str) -> None:
    """Names of pods come from the watcher: without it a name would protect nobody."""
    named = first_name(settings)
    if named is not None:
        key, word = named
        raise UsageProblem(
            f"{path}:{_line_of(key, text)}: {key}: expected cgroup paths, for with "
            f'watch = false nobody tells the names of pods; found "{word}"'
        )


def main(arguments: Sequence[str]) -> int:
    """``config PATH``: the settings as one line of JSON; else one sentence and status 2."""
    try:
        line = to_json(read(arguments[0] if arguments else PATH))
    except UsageProblem as problem:
        sys.stdout.write(f"{problem}\n")
        return 2
    sys.stdout.write(f"{line}\n")
    return 0
