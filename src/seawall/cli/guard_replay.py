# SPDX-License-Identifier: Apache-2.0
"""``seawall guard replay FILE``: a black box judged once more, as then and with other settings."""

import itertools
import sys
from argparse import Namespace
from typing import Any, Final

from seawall.blackbox.reader import Box
from seawall.cli.blackbox import check_is_there
from seawall.cli.console import console_for
from seawall.cli.progress import ProgressLine
from seawall.cli.source_options import BOX
from seawall.cli.verb import print_page
from seawall.guard.config import parse
from seawall.guard.settings import Settings
from seawall.host.host import Unread
from seawall.host.input_file import open_input
from seawall.problems import UsageProblem
from seawall.replay.replay import replay as judge_again
from seawall.replay.replay_document import REPLAY
from seawall.replay.replay_results import BoxReplay
from seawall.replay.replay_text import lines
from seawall.sources.box_source import box_time, whole_span
from seawall.views.document import head, render, taken_at, with_unread

_CONFIG_MOST: Final = 256 << 10


def replay(arguments: Namespace) -> int:
    """Print it; UsageProblem when the box, the time or the settings are unusable."""
    policy = policy_at(arguments.config) if arguments.config else None
    path = arguments.file or BOX
    check_is_there(path)
    box = Box.open(path)
    span = whole_span(box)
    moment = box_time(box, arguments.at, span) if arguments.at else None
    found = _judged(box, policy, arguments.config or "", moment)
    if arguments.json:
        print(render(REPLAY.of(_top(found), found)))
        return 0
    print_page(paper := console_for(arguments.color), _top(found), (), lines(found, paper), [])
    return 0


def _judged(box: Box, policy: Settings | None, path: str, moment: float | None) -> BoxReplay:
    """A full box takes many seconds: on a terminal it says how far it is."""
    if not sys.stderr.isatty():
        return judge_again(box, policy, path, moment=moment)
    progress, numbers = ProgressLine("guard replay", is_terminal=True), itertools.count(1)

    def tell() -> None:
        progress.tell(f"frame {next(numbers):,} of {len(box.heads):,}")

    try:
        return judge_again(box, policy, path, moment=moment, tell=tell)
    finally:
        progress.end()


def policy_at(path: str) -> Settings:
    """As ``guard check`` reads it, whoever owns the file: here it turns nothing on."""
    try:
        with open_input(path, "the guard's settings") as file:
            data = file.read(_CONFIG_MOST + 1)
    except (OSError, ValueError) as error:
        words = getattr(error, "strerror", None) or str(error)
        raise UsageProblem(f"{path}: {words}") from error
    if len(data) > _CONFIG_MOST:
        raise UsageProblem(f"{path}: expected at most {_CONFIG_MOST:,} bytes, found more")
    return parse(data, path)


def _top(found: BoxReplay) -> dict[str, Any]:
    """Of the machine that was recorded, not of this one."""
    last = found.boots[-1] if found.boots else None
    start = last.start if last is not None else None
    host = {
        "node": start and start.host,
        "boot_id": last and last.boot_id,
        "kernel": start and start.kernel,
        "page_size": None,
    }
    top = head("guard-replay", Unread("kernel", "not_captured"), None)
    moment = None if last is None else taken_at(last.last_unix_seconds)
    return {**top, **with_unread({"taken_at": moment}), "host": with_unread(host)}
