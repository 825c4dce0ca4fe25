# SPDX-License-Identifier: Apache-2.0
"""A bundle: the record of a machine's answers, as an ordinary archive.

Layout (gzip'ed tar, or the same unpacked into a folder)::

    MANIFEST.json           {"schema": "seawall.bundle/1", "rounds": 2, "files": 812, ...,
                            "files_of_pass": [600, 212]}
    1/files/proc/meminfo    what a file held, at its own path, name bytes %-escaped
    1/answers.json          {"unread", "names", "links", "probes", "same"}
    2/...                   the second pass; "same" names files unchanged since the first

Reading one trusts nothing: sizes and counts are limited, names that climb out and links are
refused, nothing is written anywhere.

One that was cut on its way (ssh ends with the node) is used as far as its passes are whole, the
first as far as it goes: what was lost is ``not_captured``, and ``Bundle.cut`` says it in words.
"""

import json
import os
import re
import stat
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from typing import Final, TypeGuard, cast, get_args

from seawall.host import archive
from seawall.host.host import BREAKS_OFF, JSON, READ_LIMIT_BYTES, Unread, Why
from seawall.host.input_file import open_input
from seawall.host.recording import Round
from seawall.problems import BundleProblem

SCHEMA: Final = "seawall.bundle/1"
ROUNDS_LIMIT: Final = 100
ENTRIES_LIMIT: Final = 2_000_000
ANSWERS_LIMIT_BYTES: Final = 24 << 20
_MEMBER: Final = re.compile(
    r"(?:\./)?(MANIFEST\.json|([1-9][0-9]{0,3})/(answers\.json|files/.+))\Z"
)
_REASONS: Final = frozenset(get_args(Why))


class Bundle:
    """The rounds of a recorded machine; each is a host of its own."""

    def __init__(
        self, rounds: Sequence[Round], manifest: dict[str, JSON], cut: str | None = None
    ) -> None:
        self.manifest = manifest
        self.answers = tuple(rounds)
        self.cut = cut
        """Where it breaks off and what is missing, in words; None when it is whole."""
        words = (BREAKS_OFF,) if cut else ()
        self.rounds = tuple(BundleHost(round_, *words) for round_ in rounds)


class BundleHost:
    """One recorded pass.  A question that was never asked answers ``not_captured``, and
    ``not_held`` says in words why.
    """

    def __init__(self, round_: Round, not_held: str = "the bundle does not hold it") -> None:
        self._round = round_
        self._not_held = not_held

    def read(self, path: str, limit_bytes: int = READ_LIMIT_BYTES) -> bytes | Unread:
        answer = self._round.files.get(path)
        if answer is None:
            return self._not_captured(path)
        if isinstance(answer, bytes) and len(answer) > limit_bytes:
            return Unread(path, "too_big", "larger than its reader's limit")
        return answer

    def read_each(self, paths: Sequence[str]) -> Iterator[bytes | Unread]:
        for path in paths:
            yield self.read(path)

    def names(self, path: str) -> tuple[str, ...] | Unread:
        return self._round.names.get(path, self._not_captured(path))

    def link(self, path: str) -> str | Unread:
        return self._round.links.get(path, self._not_captured(path))

    def ask(self, probe: str, argument: str = "") -> JSON | Unread:
        return self._round.probes.get((probe, argument), self._not_captured(probe))

    def _not_captured(self, path: str) -> Unread:
        return Unread(path, "not_captured", self._not_held)


def open_bundle(path: str) -> Bundle:
    """The bundle at ``path`` (an archive, a folder, or ``-``); BundleProblem if unusable."""
    members: dict[str, bytes] = {}
    is_cut = False
    try:
        pairs = _folder_members(path) if os.path.isdir(path) else _archive_members(path)
        members.update(pairs)
    except (archive.ArchiveEnd, tarfile.TarError, zlib.error, ValueError) as error:
        is_cut = isinstance(error, archive.ArchiveEnd)
        if not is_cut or not members:
            words = str(error) or type(error).__name__
            raise BundleProblem(f"{path}: not a seawall bundle, or cut short ({words})") from error
    except OSError as error:
        words = error.strerror or str(error)
        raise BundleProblem(f"{path}: cannot be read as a bundle: {words}") from error
    return _assemble(path, members, is_cut=is_cut)


def _archive_members(path: str) -> Iterator[tuple[str, bytes]]:
    """Names and contents of a tar, plain or gzip'ed, within the limits."""
    with open_input(path, "a bundle") as raw:
        for name, data in archive.members(path, raw):
            yield _member_name(path, name), data


def _folder_members(path: str) -> Iterator[tuple[str, bytes]]:
    """The same for an unpacked bundle; links in it are refused, not followed."""
    total = 0
    seen = 0
    for folder, folders, names in os.walk(path):
        seen += len(folders) + len(names)
        if seen > archive.MEMBERS_LIMIT:
            raise BundleProblem(f"{path}: more than {archive.MEMBERS_LIMIT:,} files in it")
        for name in names:
            full = os.path.join(folder, name)
            fd = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with open(fd, "rb") as file:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    raise BundleProblem(f"{path}: {name!r} in it is no plain file")
                total = archive.within_limits(path, name, os.fstat(fd).st_size, total)
                yield _member_name(path, os.path.relpath(full, path)), file.read(READ_LIMIT_BYTES)


def _member_name(path: str, name: str) -> str:
    match = _MEMBER.match(name)
    if not match or ".." in name.split("/"):
        raise BundleProblem(f"{path}: {name!r} does not belong in a seawall bundle")
    return match[1]


def _assemble(path: str, members: dict[str, bytes], *, is_cut: bool) -> Bundle:
    manifest = _load(path, "MANIFEST.json", members)
    if manifest.get("schema") != SCHEMA:
        found = str(manifest.get("schema"))[:40]
        raise BundleProblem(f"{path}: expected schema {SCHEMA}, found {found!r}")
    count = manifest.get("rounds")
    if not isinstance(count, int) or not 1 <= count <= ROUNDS_LIMIT:
        raise BundleProblem(f"{path}: MANIFEST.json: rounds must be 1 to {ROUNDS_LIMIT}")
    files: list[dict[str, bytes]] = [{} for _ in range(count)]
    for name, data in members.items():
        pass_number, _, inner = name.partition("/")
        if inner.startswith("files/") and int(pass_number) <= count:
            files[int(pass_number) - 1][_unescape(inner[5:])] = data
    remains = _Remains(path, manifest, members, [len(found) for found in files], is_cut=is_cut)
    rounds: list[Round] = []
    _limit_answers(path, members)
    for number in range(remains.rounds):
        answers = _load(path, f"{number + 1}/answers.json", members)
        rounds.append(_round(answers, files[number], rounds[-1] if rounds else None))
        if sum(len(round_.files) for round_ in rounds) > ENTRIES_LIMIT:
            raise BundleProblem(f"{path}: more than {ENTRIES_LIMIT} answers in it")
    return Bundle(rounds, manifest, remains.words)


class _Remains:
    """How many passes of a bundle can be used, and what is missing; BundleProblem if none."""

    def __init__(
        self, path: str, manifest: dict[str, JSON], members: dict[str, bytes], held: list[int],
        *, is_cut: bool,
    ) -> None:  # fmt: skip
        self.rounds = len(held)
        self.words: str | None = None
        there, told = sum(held), manifest.get("files")
        if isinstance(told, int) and told < there:
            raise BundleProblem(f"{path}: {there} files in it, and its MANIFEST.json has {told}")
        if told == there or (told is None and not is_cut):
            return  # a cut after the last file loses nothing
        begun = 0
        while begun < len(held) and f"{begun + 1}/answers.json" in members:
            begun += 1
        if not begun or not held[0]:
            raise BundleProblem(
                f"{path}: it breaks off before the first moment of the machine: nothing of it can "
                "be used; capture it again"
            )
        of_pass = manifest.get("files_of_pass")
        ends = of_pass[begun - 1] if _is_counts(of_pass, len(held)) else None
        whole = begun if held[begun - 1] == ends else begun - 1
        self.rounds = max(1, whole)
        share = f"after {100 * there // told} % of its files" if isinstance(told, int) else "early"
        self.words = f"the bundle breaks off {share}: {_lost(whole, len(held))}"


def _lost(whole: int, count: int) -> str:
    if not whole:
        rates = ", and of the second nothing: no rates" if count > 1 else ""
        return f"of the first moment a part is missing{rates}"
    if whole == 1:
        return "the second moment is missing: no rates"
    return f"{whole} of {count} moments are whole, and the rest is left out"


def _is_counts(row: JSON, length: int) -> TypeGuard[list[int]]:
    return isinstance(row, list) and len(row) == length and all(type(n) is int for n in row)


def _limit_answers(path: str, members: dict[str, bytes]) -> None:
    """JSON takes many times its size once it is parsed."""
    size = sum(len(data) for name, data in members.items() if name.endswith("answers.json"))
    if size > ANSWERS_LIMIT_BYTES:
        raise BundleProblem(f"{path}: its answers.json are over {ANSWERS_LIMIT_BYTES >> 20} MiB")


def _load(path: str, name: str, members: dict[str, bytes]) -> dict[str, JSON]:
    if name not in members:
        raise BundleProblem(f"{path}: no {name} in it; not a seawall bundle, or cut")
    try:
        # json also reads NaN and Infinity, which no JSON has.
        document = json.loads(members[name], parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise BundleProblem(f"{path}: {name} is not JSON") from error
    if not isinstance(document, dict):
        raise BundleProblem(f"{path}: {name}: expected an object")
    return document


def _refuse(word: str) -> JSON:
    raise ValueError(f"{word} is no number")


def _round(answers: dict[str, JSON], files: dict[str, bytes], before: Round | None) -> Round:
    """One pass, from its answers and files; what is not of the right shape is left out."""
    round_ = Round(files=dict(files))
    for path, reason in _items(answers.get("unread")):
        round_.files[path] = _unread(path, reason)
    same = answers.get("same")
    if before and _is_words(same):
        round_.files |= {path: before.files[path] for path in same if path in before.files}
    for path, answer in _items(answers.get("names")):
        if isinstance(answer, dict):
            round_.names[path] = _unread(path, answer.get("!unread"))
        elif _is_words(answer):
            round_.names[path] = tuple(answer)
    for path, answer in _items(answers.get("links")):
        if isinstance(answer, dict):
            round_.links[path] = _unread(path, answer.get("!unread"))
        elif isinstance(answer, str):
            round_.links[path] = answer
    round_.probes |= _probes(answers.get("probes"))
    return round_


def _probes(rows: JSON) -> dict[tuple[str, str], JSON | Unread]:
    """``[[probe, argument, answer], ...]``."""
    found: dict[tuple[str, str], JSON | Unread] = {}
    for row in rows if isinstance(rows, list) else ():
        match row:
            case [str(probe), str(argument), {"!unread": reason}]:
                found[probe, argument] = _unread(probe, reason)
            case [str(probe), str(argument), answer]:
                found[probe, argument] = answer
    return found


def _items(mapping: JSON) -> Iterator[tuple[str, JSON]]:
    if isinstance(mapping, dict):
        yield from mapping.items()


def _is_words(answer: JSON) -> TypeGuard[list[str]]:
    return isinstance(answer, list) and all(isinstance(word, str) for word in answer)


def _unread(path: str, reason: JSON) -> Unread:
    match reason:
        case [str(why), str(detail)] if why in _REASONS:
            return Unread(path, cast("Why", why), detail)
    return Unread(path, "not_captured", "the bundle's reason is unreadable")


def _unescape(name: str) -> str:
    if "%" not in name:
        return name
    raw = re.sub(
        rb"%([0-9A-F]{2})",
        lambda match: bytes([int(match[1], 16)]),
        name.encode("ascii", "replace"),
    )
    return os.fsdecode(raw)
