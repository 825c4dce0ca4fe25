# SPDX-License-Identifier: Apache-2.0
"""The OOM kills of a machine: what its kernel still holds, its journal, its log files."""

import io
import sys
import time
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from seawall.accounts.oom.explanation import Explanation, explain_all
from seawall.accounts.oom.report_facts import Hints
from seawall.accounts.oom.series import Series
from seawall.cli.console import console_for
from seawall.cli.oom_log_source import Log, refused
from seawall.cli.source_options import TIMEOUT_SECONDS, open_source
from seawall.findings.blindness import NotSeen, unread_rows
from seawall.host import kernel_messages, kmsg
from seawall.host.host import Unread
from seawall.readings.container_files import ContainerFiles
from seawall.readings.kernel import Kernel
from seawall.readings.meminfo import Meminfo
from seawall.readings.oom_log.parser import read_reports
from seawall.sources.source import Source
from seawall.views.document import head

FILES: Final = ("/var/log/kern.log", "/var/log/messages", "/var/log/syslog")
_FILE_MOST_BYTES: Final = 64 << 20
_QUIET_SECONDS: Final = 1.0
"""The kernel writes a report in one go: after this much silence it is over."""
_HELD_LINES_MOST: Final = 200_000
_JOURNAL_SHARE: Final = 0.75
"""Of --timeout: the rest is for telling."""


class OwnLog(NamedTuple):
    """What was found, and where."""

    log: Log
    explanations: Iterable[Explanation]
    head: dict[str, Any]


def own_log(arguments: Namespace) -> OwnLog:
    """Of this machine, of --root or of --from."""
    if arguments.follow:
        arguments.timeout = TIMEOUT_SECONDS
    return log_of(arguments, open_source(arguments))


def log_of(arguments: Namespace, source: Source) -> OwnLog:
    """The first log of the source that tells of an OOM kill, and what could not be read."""
    hints = hints_of(arguments, source)
    ways = _recorded(source) if source.live is None else _here(arguments, source)
    top = head("oom-explain", source.first.get(Kernel), None)
    unseen: list[NotSeen] = []
    read = 0
    log = Log("no log")
    for log, lines in ways:
        found = list(
            explain_all(read_reports(log.counted(lines), log.tally), hints, is_guarded=True)
        )
        unseen += log.unseen
        read += log.lines_read
        if found:
            break
    else:
        found = []
    whole = Log(
        log.name,
        read if not found else log.lines_read,
        unseen + _names_unseen(source),
        tally=log.tally,
        is_like_a_log=True,
    )
    return OwnLog(whole, found, top)


def _names_unseen(source: Source) -> list[NotSeen]:
    rows = unread_rows([source.first])
    if source.cut:
        rows.insert(0, NotSeen("the rest of the record", source.cut, "a whole one"))
    return rows


def hints_of(arguments: Namespace, source: Source) -> Hints:
    """The machine's page size, release and containers; names are had from files alone."""
    kernel = source.first.get(Kernel)
    files = source.first.get(ContainerFiles)
    meminfo = source.first.get(Meminfo)
    known = None if isinstance(kernel, Unread) else kernel
    return Hints(
        kernel=getattr(arguments, "kernel", None),
        page_bytes=getattr(arguments, "page_size", None),
        host_page_bytes=known.page_size if known else None,
        host_kernel=known.release if known else None,
        files=None if isinstance(files, Unread) else files,
        booted_unix_seconds=_booted(known),
        host_swap_bytes=None if isinstance(meminfo, Unread) else meminfo.swap_total,
    )


def _booted(kernel: Kernel | None) -> float | None:
    """When the clock stood at zero that the kernel stamps its messages with."""
    if kernel is None or kernel.taken_at_unix_seconds is None or not kernel.monotonic_seconds:
        return None
    return kernel.taken_at_unix_seconds - kernel.monotonic_seconds


def _here(arguments: Namespace, source: Source) -> Iterator[tuple[Log, Iterator[bytes]]]:
    """What the kernel holds, then what the journal kept of this boot, then the log files; in
    a container the host's journal cannot be asked.
    """
    root = (arguments.root or "").rstrip("/")
    yield _guarded(kmsg.PATH, kernel_messages.kmsg_lines(root + kmsg.PATH))
    if not root:
        wait = _JOURNAL_SHARE * arguments.timeout
        yield _guarded("the journal", kernel_messages.journal_lines(wait))
    yield from _files(source)


def _guarded(name: str, lines: Iterator[bytes]) -> tuple[Log, Iterator[bytes]]:
    """A log that may not be read has no lines, and says why."""
    log = Log(name)

    def told() -> Iterator[bytes]:
        try:
            yield from lines
        except OSError as error:
            log.unseen.append(refused(name, error))
        else:
            if not log.lines_read:
                why = "holds no line of the kernel's that may be read"
                log.unseen.append(NotSeen(name, why, "root, or the group systemd-journal"))

    return log, told()


def _recorded(source: Source) -> Iterator[tuple[Log, Iterator[bytes]]]:
    """What a bundle or a tree holds: the kernel's own log, then the usual files."""
    logs = getattr(source.first.host, "kernel_logs", ()) or (kmsg.PATH,)
    yield from _files(source, tuple(dict.fromkeys((*logs, *FILES))))


def _files(source: Source, paths: Sequence[str] = FILES) -> Iterator[tuple[Log, Iterator[bytes]]]:
    host = source.first.host
    for path in paths:
        log = Log(path)
        data = host.read(path, _FILE_MOST_BYTES)
        if not isinstance(data, Unread):
            yield log, io.BytesIO(data)  # cut at newlines only: a command may be called a\rb
        elif data.why not in ("absent", "not_captured") or path == kmsg.PATH:
            log.unseen.append(
                NotSeen(path, data.detail or data.why, "give the log as FILE: oom explain FILE")
            )
            yield log, iter(())


def follow(arguments: Namespace) -> int:
    """Every new kill, whole, until somebody ends it."""
    arguments.timeout = TIMEOUT_SECONDS  # for the names; following has none
    source = open_source(arguments)
    top = head("oom-explain", source.first.get(Kernel), None)
    series = Series()
    number = 0
    sys.stderr.write("seawall: following the kernel's log; ^C ends it\n")
    for lines in _batches():
        reports = list(read_reports(lines))
        if not reports:
            continue
        hints = hints_of(arguments, open_source(arguments))
        for explanation in explain_all(
            reports, hints, series=series, after=number, is_guarded=True
        ):
            number = explanation.number
            _print(arguments, explanation, top)
    return 0


def _batches() -> Iterator[list[bytes]]:
    """Lines that came together, each batch ended by silence."""
    held: list[bytes] = []
    for line in _coming():
        if line is not None:
            held.append(line)
        if held and (line is None or len(held) >= _HELD_LINES_MOST):
            yield held
            held = []


def _coming() -> Iterator[bytes | None]:
    try:
        yield from kernel_messages.follow_kmsg(_QUIET_SECONDS)
    except PermissionError:
        yield from kernel_messages.follow_journal(_QUIET_SECONDS)


def _print(arguments: Namespace, explanation: Explanation, top: dict[str, Any]) -> None:
    """As soon as it is there; as JSON a document each."""
    if arguments.json:
        from seawall.views.documents.oom_explain_document import ReportTally, stream  # noqa: PLC0415 - one of the two

        tail = ReportTally()
        tail.close("live", 0, ())
        print("".join(stream(top, [explanation], tail)), flush=True)
        return
    from seawall.views.oom_explain_text import lines  # noqa: PLC0415 - one of the two

    print(time.strftime("%Y-%m-%d %H:%M:%S"))
    for line in lines(explanation, console_for(arguments.color)):
        print(line)
    print(flush=True)
