# SPDX-License-Identifier: Apache-2.0
"""Journals and black boxes, single or in folders, plain or gzip, by node.

Hostile input: sizes are bounded, what is no line of ours is counted, and a file that cannot be
read is told of, not raised, as long as another one can be.
"""

import gzip
import os
import re
import stat
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Final

from seawall.blackbox.reader import Box, is_box
from seawall.problems import BundleProblem, UsageProblem
from seawall.replay.report_lines import line_of
from seawall.replay.report_story import Story, Ticked
from seawall.replay.start import Start
from seawall.replay.tape import Line, Tape
from seawall.replay.tape import Ticked as TapeTick

FILES_MOST: Final = 4000
DEPTH_MOST: Final = 3
JOURNAL_MOST_BYTES: Final = 256 << 20
BOX_MOST_BYTES: Final = 1 << 30
_LINE_MOST_BYTES: Final = 300 << 10
_BLOCK_BYTES: Final = 1 << 20
_GZIP: Final = b"\x1f\x8b"
_JOURNAL: Final = re.compile(r"decisions(?:\.1)?\.jsonl(?:\.1)?(?:\.gz)?\Z")
_SUFFIX: Final = re.compile(r"(?:\.1)?\.jsonl(?:\.\d+)?(?:\.gz)?\Z|\.gz\Z")
_BOX: Final = re.compile(r"blackbox(?:[.-].*)?\Z")
_NODE_MOST: Final = 253


@dataclass
class Source:
    """What one folder or file gave; ``node`` is its name until a box tells a better one."""

    node: str
    stories: dict[str, Story] = field(default_factory=dict)
    has_journal: bool = False
    has_box: bool = False
    malformed: int = 0
    torn: int = 0
    lost: int = 0
    problems: list[str] = field(default_factory=list)
    host: str = ""
    first_unix_seconds: float = float("inf")
    last_unix_seconds: float = float("-inf")

    def story(self, boot_id: str) -> Story:
        """Of that boot."""
        return self.stories.setdefault(boot_id, Story(boot_id))

    def spans(self, unix_seconds: float) -> None:
        """Something is known of that moment."""
        self.first_unix_seconds = min(self.first_unix_seconds, unix_seconds)
        self.last_unix_seconds = max(self.last_unix_seconds, unix_seconds)


def read(paths: list[str], own_name: str = "") -> list[Source]:
    """By node; UsageProblem when a path is not there, or nothing of all is ours.

    ``own_name``: of the node whose files these are, when they are this machine's.
    """
    files = [pair for path in paths for pair in _files_of(path)]
    if len(files) > FILES_MOST:
        raise UsageProblem(f"{len(files):,} files; at most {FILES_MOST:,} at once")
    by_node: dict[str, Source] = {}
    # Journals first: while the ticks of a box are read it is known whom to look after.
    for node, path in sorted(files, key=lambda pair: (_is_box_name(pair[1]), pair)):
        name = own_name or node
        _read_file(by_node.setdefault(name, Source(name)), path)
    _refuse_nothing(by_node, paths)
    return _joined(list(by_node.values()))


def _refuse_nothing(sources: dict[str, Source], paths: list[str]) -> None:
    if any(source.has_box or source.has_journal for source in sources.values()):
        return
    problems = [problem for source in sources.values() for problem in source.problems]
    where = ", ".join(paths[:3])
    why = problems[0] if problems else f"{where}: no decisions.jsonl and no black box there"
    raise UsageProblem(f"{why}; expected decision journals, black boxes, or folders of them")


# --- which files --------------------------------------------------------------------------------


def _files_of(path: str) -> Iterator[tuple[str, str]]:
    """Pairs of node and file; UsageProblem when it is not there."""
    try:
        found = os.stat(path)
    except (OSError, ValueError) as error:
        words = getattr(error, "strerror", None) or str(error)
        raise UsageProblem(f"{path}: {words}; expected a journal or a black box") from error
    if stat.S_ISDIR(found.st_mode):
        yield from _in_folder(os.path.abspath(path), DEPTH_MOST)
        return
    if not stat.S_ISREG(found.st_mode):
        raise UsageProblem(f"{path}: expected a journal, a black box or a folder of them")
    folder, name = os.path.split(os.path.abspath(path))
    is_usual = _JOURNAL.match(name) or _BOX.match(name)
    yield (_named(folder) if is_usual else _SUFFIX.sub("", name) or name), path


def _in_folder(folder: str, depth: int) -> Iterator[tuple[str, str]]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries[:FILES_MOST]:
        if entry.is_dir(follow_symlinks=False):
            if depth > 1:
                yield from _in_folder(entry.path, depth - 1)
        elif not entry.is_file():
            continue
        elif _JOURNAL.match(entry.name) or _BOX.match(entry.name):
            yield _named(folder), entry.path
        elif entry.name.endswith((".jsonl", ".jsonl.gz")):
            yield _SUFFIX.sub("", entry.name) or entry.name, entry.path


def _named(folder: str) -> str:
    """A node by its folder; ``NODE/run/seawall`` and ``NODE/seawall`` are NODE's."""
    parts = [part for part in folder.split("/") if part]
    while len(parts) > 1 and parts[-1] in ("seawall", "run", "lib", "var"):
        parts.pop()
    return (parts[-1] if parts else folder)[:_NODE_MOST]


def _is_box_name(path: str) -> bool:
    return _BOX.match(os.path.basename(path)) is not None


# --- reading ------------------------------------------------------------------------------------


def _read_file(source: Source, path: str) -> None:
    try:
        if is_box(path):
            _read_box(source, Box.open(path))
            return
        with open(path, "rb") as file:
            if not _is_gzip(file):
                _read_journal(source, file)
                return
            with gzip.GzipFile(fileobj=file) as inner:
                _read_packed(source, inner, path)
    except (OSError, EOFError, zlib.error, UsageProblem) as error:
        words = str(error) if isinstance(error, UsageProblem) else _words(error)
        source.problems.append(words if path in words else f"{path}: {words}")


def _words(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _is_gzip(file: IO[bytes]) -> bool:
    begin = file.read(2)
    file.seek(0)
    return begin == _GZIP


def _read_packed(source: Source, file: gzip.GzipFile, path: str) -> None:
    """A journal, or a box, which is unpacked into memory: nothing is written to a disk."""
    begin = file.read(1)
    file.seek(0)
    if begin in (b"{", b"\n", b""):
        _read_journal(source, file)
        return
    fd = os.memfd_create("seawall-box", os.MFD_CLOEXEC)
    try:
        size = 0
        while block := file.read(_BLOCK_BYTES):
            size += os.write(fd, block)
            if size > BOX_MOST_BYTES:
                raise BundleProblem(f"{path}: unpacked larger than any black box")
        own = f"/proc/self/fd/{fd}"
        if not is_box(own):
            raise BundleProblem(f"{path}: neither a decision journal nor a black box")
        _read_box(source, Box.open(own))
    finally:
        os.close(fd)


def _read_journal(source: Source, file: IO[bytes] | gzip.GzipFile) -> None:
    size = ours = 0
    while raw := file.readline(_LINE_MOST_BYTES):
        size += len(raw)
        if size > JOURNAL_MOST_BYTES:
            source.problems.append(f"{source.node}: of a journal of more than 256 MiB the rest")
            break
        if not raw.endswith(b"\n") and len(raw) >= _LINE_MOST_BYTES:
            source.malformed += 1
            while (rest := file.readline(_BLOCK_BYTES)) and not rest.endswith(b"\n"):
                size += len(rest)
            continue
        if raw.strip():
            ours += _take_line(source, raw)
    source.has_journal = source.has_journal or ours > 0 or size == 0


def _take_line(source: Source, raw: bytes) -> bool:
    try:
        said = line_of(raw)
    except (ValueError, OverflowError):
        source.malformed += 1
        return False
    source.story(said.boot_id).hear(said)
    source.spans(said.unix_seconds)
    return True


def _read_box(source: Source, box: Box) -> None:
    source.has_box = True
    source.torn += box.torn
    for boot in box.boots():
        story = source.story(boot.boot_id)
        story.has_box = True
        first, last = boot.heads[0], boot.heads[-1]
        story.offset = first.unix_seconds - first.monotonic_seconds
        story.last_frame_seconds = last.monotonic_seconds
        source.spans(first.unix_seconds)
        source.spans(last.unix_seconds)
        tape = Tape(box, boot)
        for event in tape:
            _take_event(source, story, event)
        source.lost += tape.lost_frames + tape.lost_ticks
        source.problems += [f"{source.node}: {words}" for words in tape.problems]
        story.ticks.sort()
    box.close()


def _take_event(source: Source, story: Story, event: object) -> None:
    match event:
        case Start():
            source.host = str(getattr(event, "host", "") or source.host)[:_NODE_MOST]
        case TapeTick(tick=tick):
            node = tick.node
            story.see(Ticked(node.seconds, tick.state, node.kernel_kills), tick.groups)
        case Line(is_kernel=True):
            story.kernel_said(event.text, event.unix_seconds - (story.offset or 0.0))
        case Line():
            _take_line(source, event.text.encode("utf-8", "surrogateescape"))


# --- by node ------------------------------------------------------------------------------------


def _joined(sources: list[Source]) -> list[Source]:
    """Sources that share a boot are of one node: its journal here, its box there."""
    owner: dict[str, Source] = {}
    nodes: list[Source] = []
    for source in sources:
        other = next((owner[boot] for boot in source.stories if boot in owner), None)
        if other is None:
            nodes.append(source)
            other = source
        else:
            _merge(other, source)
        owner.update(dict.fromkeys(source.stories, other))
    for node in nodes:
        node.node = node.host or node.node
        _follow(node)
    return nodes


def _merge(into: Source, more: Source) -> None:
    for boot_id, story in more.stories.items():
        into.story(boot_id).join(story)
    into.has_journal = into.has_journal or more.has_journal
    into.has_box = into.has_box or more.has_box
    into.host = into.host or more.host
    into.problems += more.problems
    for name in ("malformed", "torn", "lost"):
        setattr(into, name, getattr(into, name) + getattr(more, name))
    into.first_unix_seconds = min(into.first_unix_seconds, more.first_unix_seconds)
    into.last_unix_seconds = max(into.last_unix_seconds, more.last_unix_seconds)


def _follow(node: Source) -> None:
    """A boot is followed when another one began after it."""
    begins = {boot: story.began for boot, story in node.stories.items()}
    for boot, story in node.stories.items():
        story.is_followed = any(
            other != boot and at is not None and (begins[boot] or 0.0) < at
            for other, at in begins.items()
        )
