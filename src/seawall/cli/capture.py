# SPDX-License-Identifier: Apache-2.0
"""``seawall capture``: every question that any reading asks, with its answer, in a bundle.

Not a ``Verb``: it looks at no page; its answer is a file.
"""

import io
import os
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import Final

from seawall.cli.console import terminal_columns
from seawall.cli.memory_who import trace_seconds
from seawall.cli.output_file import FOLDER, check_output, write_whole
from seawall.cli.source_options import SLOT, TIMEOUT_SECONDS, seconds_of
from seawall.cli.topics import all_topics
from seawall.cli.tracing import AROUND_SECONDS, ENDING, TRACE_SECONDS, Spaced, overlay_host_of
from seawall.host.bundle_writer import write_bundle
from seawall.host.host import JSON, Host, Unread
from seawall.host.live import LiveHost
from seawall.host.recording import Recording
from seawall.problems import UsageProblem
from seawall.readings.finished_trace import PROBE
from seawall.readings.kernel import Kernel
from seawall.readings.snapshot import Snapshot
from seawall.version import VERSION
from seawall.views.document import head, render, taken_at

WANTED: Final = ("DAC_READ_SEARCH", "SYS_PTRACE")
FOR_SECONDS: Final = 3.0
_PASS_EVERY_SECONDS: Final = 5.0
_PASSES_MOST: Final = 13
LEAST_SECONDS: Final = 2
MOST_SECONDS: Final = 3600


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of ``seawall capture`` to its parser."""
    parser.add_argument(
        "-o", "--output", metavar="FILE",
        help="'-' for stdout; default: a new file under /run/seawall, not on the disk",
    )  # fmt: skip
    parser.add_argument(
        "--for", dest="seconds", type=_window, default=FOR_SECONDS, metavar="SECONDS",
        help="time between the first and the last pass, for rates (default %(default)g)",
    )  # fmt: skip
    parser.add_argument(
        "--who", type=trace_seconds, nargs="?", const=TRACE_SECONDS, metavar="SECONDS",
        help="first trace for so long who takes uncounted memory, for memory --who "
        "--from (root; default %(const)g)",
    )  # fmt: skip
    parser.add_argument(
        "--with-cmdline", action="store_true",
        help="keep whole command lines; they may hold secrets (default: their first word)",
    )  # fmt: skip
    parser.add_argument("--root", metavar="DIR", default="/", help="e.g. /host in a DaemonSet")
    parser.add_argument(
        "--timeout", type=seconds_of, metavar="SECONDS",
        help=f"stop asking after this long (default: --for, --who and {TIMEOUT_SECONDS:g})",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="say where it went as JSON")


def _window(text: str) -> float:
    seconds = seconds_of(text)
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        raise ArgumentTypeError(f"expected {LEAST_SECONDS} to {MOST_SECONDS} seconds, not {text!r}")
    return seconds


def complete(arguments: Namespace) -> None:
    """Defaults that depend on other options."""
    traced = 0.0 if arguments.who is None else arguments.who + AROUND_SECONDS
    if arguments.timeout is None:
        arguments.timeout = arguments.seconds + traced + TIMEOUT_SECONDS
    if arguments.who is not None:
        ENDING.listen()


def run(arguments: Namespace) -> int:
    """Record, write, and say where."""
    if not os.path.isdir(os.path.join(arguments.root, "proc")):
        raise UsageProblem(f"--root {arguments.root}: no proc folder in it")
    traced = arguments.who or 0.0
    if arguments.timeout < arguments.seconds + traced + 1:
        what = f"--for {arguments.seconds:g}" + (f" and --who {traced:g}" if traced else "")
        raise UsageProblem(
            f"--timeout {arguments.timeout:g} ends before {what} is over; give a longer --timeout"
        )
    if arguments.output == "-" and arguments.json:
        raise UsageProblem("-o - and --json both want stdout; give -o FILE")
    if arguments.output == "-" and terminal_columns() is not None:
        raise UsageProblem("a bundle is no text: -o FILE, or redirect stdout to a file")
    if arguments.output != "-":
        check_output(arguments.output)
    until = time.monotonic() + arguments.timeout
    host = LiveHost(arguments.root, with_cmdline=arguments.with_cmdline, until=until, slot=SLOT)
    recording = Recording(_traced(host, arguments))
    kernel = record(recording, host, arguments.seconds)
    manifest = _manifest(kernel, arguments)
    if arguments.output == "-":
        write_bundle(recording.rounds, manifest, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return 0
    path = arguments.output or _new_name(kernel)
    packed = io.BytesIO()
    write_bundle(recording.rounds, manifest, packed)
    size = len(packed.getbuffer())
    write_whole(path, packed)
    _say(f"{path}: {size / 2**20:.1f} MiB, {len(recording.rounds)} passes")
    if arguments.json:
        from seawall.views.documents.bundle_documents import CAPTURE, WrittenBundle  # noqa: PLC0415 - only here

        top = head("capture", kernel, arguments.seconds)
        print(render(CAPTURE.of(top, WrittenBundle(path, size, len(recording.rounds)))))
    else:
        print(path)
    return 0


def _traced(host: LiveHost, arguments: Namespace) -> Host:
    """The trace comes first: every pass then holds it, beside the ledger after it."""
    if arguments.who is None:
        return host
    told = overlay_host_of(host, arguments.root == "/", arguments.who, Spaced(_say))
    failed = told.ask(PROBE)
    if isinstance(failed, Unread):
        _say(f"no trace: {failed.detail or failed.why}")
    return told


def record(recording: Recording, host: LiveHost, seconds: float) -> Kernel | Unread:
    """Two passes over every topic or more, ``seconds`` from the first to the last."""
    topics = all_topics()
    passes = max(2, min(_PASSES_MOST, 1 + int(seconds / _PASS_EVERY_SECONDS)))
    began = time.monotonic()
    kernel: Kernel | Unread = Unread("kernel", "not_reached")
    for number in range(passes):
        if number:
            recording.next_round()
            due = began + seconds * number / (passes - 1)
            time.sleep(max(0.0, min(due - time.monotonic(), host.seconds_left())))
        _say(f"pass {number + 1} of {passes}, {time.monotonic() - began:.1f} s of {seconds:g} s")
        snapshot = Snapshot(recording)
        for topic in topics:
            snapshot.get(topic)
        kernel = snapshot.get(Kernel)
        if not number:
            began = max(began, time.monotonic() - 0.5)
    return kernel


def _say(text: str) -> None:
    sys.stderr.write(f"seawall capture: {text}\n")
    sys.stderr.flush()


def _manifest(kernel: Kernel | Unread, arguments: Namespace) -> dict[str, JSON]:
    known = None if isinstance(kernel, Unread) else kernel
    return {
        "tool_version": VERSION,
        "taken_at": taken_at(known.taken_at_unix_seconds if known else None),
        "node": known.node_name if known else None,
        "kernel": known.release if known else None,
        "with_cmdline": arguments.with_cmdline,
    }


def _new_name(kernel: Kernel | Unread) -> str:
    """A new file on a tmpfs: the node's disk is what is stuck."""
    node = "node" if isinstance(kernel, Unread) or not kernel.node_name else kernel.node_name
    safe = "".join(char if char.isalnum() or char in "-." else "-" for char in node)[:64]
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    return f"{FOLDER}/{safe}-{moment}.bundle"
