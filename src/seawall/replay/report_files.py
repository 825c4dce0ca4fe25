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
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import IO, Final, TypeAlias

from seawall.blackbox.first_page import SIZE_MOST_BYTES
from seawall.blackbox.reader import Boot, Box, is_box
from seawall.problems import BundleProblem, UsageProblem
from seawall.proc.memory_file import memory_file
from seawall.replay.boot_decoder import BootDecoder, Event, LogFrame, TickFrame
from seawall.replay.boot_story import BootStory, StoryMoment
from seawall.replay.journal_lines import line_of
from seawall.replay.report_all_nodes import ReportSource, join_sources
from seawall.replay.start_frame import StartFrame

FILES_MOST: Final = 4000
DEPTH_MOST: Final = 3
JOURNAL_MOST_BYTES: Final = 256 << 20
_LINE_MOST_BYTES: Final = 300 << 10
_BLOCK_BYTES: Final = 1 << 20
_GZIP: Final = b"\x1f\x8b"
_JOURNAL: Final = re.compile(r"decisions(?:\.1)?\.jsonl(?:\.1)?(?:\.gz)?\Z")
_SUFFIX: Final = re.compile(r"(?:\.1)?\.jsonl(?:\.\d+)?(?:\.gz)?\Z|\.gz\Z")
_BOX: Final = re.compile(r"blackbox(?:[.-].*)?\Z")
_NODE_MOST: Final = 253
Tell: TypeAlias = Callable[[], None] | None
"""Called often, for who waits."""


def read(
    paths: list[str], own_name: str = "", tell: Callable[[str], None] | None = None
) -> list[ReportSource]:
    """By node; UsageProblem when a path is not there, or nothing of all is ours.

    ``own_name``: of the node whose files these are, when they are this machine's.  ``tell``: how
    far it is, in words, again and again.
    """
    found = (pair for path in paths for pair in _files_of(path))
    files = list(islice(found, FILES_MOST + 1))
    if len(files) > FILES_MOST:
        raise UsageProblem(f"more than {FILES_MOST:,} files; give fewer of them at once")
    by_node: dict[str, ReportSource] = {}
    # Journals first: while the ticks of a box are read it is known whom to look after.
    files.sort(key=lambda pair: (_is_box_name(pair[1]), pair))
    for number, (node, path) in enumerate(files, start=1):
        name = own_name or node
        words = f"file {number:,} of {len(files):,}: {name[:40]}"
        told = partial(tell, words) if tell is not None else None
        _read_file(by_node.setdefault(name, ReportSource(name)), path, told)
    _refuse_nothing(by_node, paths)
    return join_sources(list(by_node.values()))


def _refuse_nothing(sources: dict[str, ReportSource], paths: list[str]) -> None:
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
        yield _named(folder), folder  # who reads it is told why not
        return
    for entry in entries:
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


def _read_file(source: ReportSource, path: str, tell: Tell) -> None:
    try:
        if is_box(path):
            _read_box(source, Box.open(path), tell)
            return
        with open(path, "rb") as file:
            if not _is_gzip(file):
                _read_journal(source, file, tell)
                return
            with gzip.GzipFile(fileobj=file) as inner:
                _read_packed(source, inner, path, tell)
    except (OSError, EOFError, zlib.error, UsageProblem) as error:
        words = str(error) if isinstance(error, UsageProblem) else _words(error)
        source.problems.append(words if path in words else f"{path}: {words}")


def _words(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _is_gzip(file: IO[bytes]) -> bool:
    begin = file.read(2)
    file.seek(0)
    return begin == _GZIP


def _read_packed(source: ReportSource, file: gzip.GzipFile, path: str, tell: Tell) -> None:
    """A journal, or a box, which is unpacked into memory: nothing is written to a disk."""
    begin = file.read(1)
    file.seek(0)
    if begin in (b"{", b"\n", b""):
        _read_journal(source, file, tell)
        return
    fd = memory_file("seawall-box")
    try:
        size = 0
        while block := file.read(_BLOCK_BYTES):
            size += os.write(fd, block)
            if size > SIZE_MOST_BYTES:
                raise BundleProblem(f"{path}: unpacked larger than any black box")
        own = f"/proc/self/fd/{fd}"
        if not is_box(own):
            raise BundleProblem(f"{path}: neither a decision journal nor a black box")
        _read_box(source, Box.open(own), tell)
    finally:
        os.close(fd)


def _read_journal(source: ReportSource, file: IO[bytes] | gzip.GzipFile, tell: Tell) -> None:
    size = ours = 0
    is_inside = False
    while raw := file.readline(_LINE_MOST_BYTES):
        size += len(raw)
        if size > JOURNAL_MOST_BYTES:
            source.problems.append(f"{source.node}: of a journal of more than 256 MiB the rest")
            break
        if tell is not None:
            tell()
        is_part = len(raw) >= _LINE_MOST_BYTES and not raw.endswith(b"\n")
        if is_part or is_inside:
            source.malformed += not is_inside
            is_inside = is_part
        elif raw.strip():
            ours += _take_line(source, raw)
    source.has_journal = source.has_journal or ours > 0 or size == 0


def _take_line(source: ReportSource, raw: bytes) -> bool:
    try:
        said = line_of(raw)
        story = source.story(said.boot_id)
    except (ValueError, OverflowError):
        source.malformed += 1
        return False
    story.hear(said)
    source.spans(said.unix_seconds)
    return True


def _read_box(source: ReportSource, box: Box, tell: Tell) -> None:
    source.has_box = True
    source.torn += box.torn
    for boot in box.boots():
        try:
            story = source.story(boot.boot_id)
        except ValueError as error:
            source.problems.append(f"{source.node}: {error}: the rest")
            break
        _read_boot(source, story, boot, BootDecoder(box, boot, tell))
    box.close()


def _read_boot(source: ReportSource, story: BootStory, boot: Boot, tape: BootDecoder) -> None:
    """Its frames are in the order of writing: what came before a trigger stands behind it."""
    last = max(boot.heads, key=lambda head: head.monotonic_seconds)
    story.has_box = True
    # By its last frame: a clock that was wrong at the start has been set by then.
    story.offset = last.unix_seconds - last.monotonic_seconds
    story.last_frame_seconds = max(story.last_frame_seconds, last.monotonic_seconds)
    times = [head.unix_seconds for head in boot.heads]
    source.spans(min(times))
    source.spans(max(times))
    for event in tape:
        _take_event(source, story, event)
    source.lost += tape.lost_frames + tape.lost_ticks
    source.problems += [f"{source.node}: {words}" for words in tape.problems]


def _take_event(source: ReportSource, story: BootStory, event: Event) -> None:
    match event:
        case StartFrame(host=host):
            source.host = host[:_NODE_MOST] or source.host
        case TickFrame(tick=tick):
            node = tick.node
            story.see(StoryMoment(node.seconds, tick.state, node.kernel_kills), tick.groups)
        case LogFrame(is_kernel=True):
            story.kernel_said(event.text, event.seconds)
        case LogFrame():
            _take_line(source, event.text.encode("utf-8", "surrogateescape"))
