# SPDX-License-Identifier: Apache-2.0
"""``seawall guard replay FILE``: a black box judged once more, as then and with other settings."""

import itertools
from typing import Final

from seawall.blackbox.reader import Box
from seawall.cli.blackbox import check_is_there
from seawall.cli.progress import ProgressLine
from seawall.cli.source_options import BOX
from seawall.cli.verb import Head, Verb
from seawall.guard.config import parse
from seawall.guard.settings import Settings
from seawall.host.host import Unread
from seawall.host.input_file import open_input
from seawall.problems import UsageProblem
from seawall.replay.replay import replay as judge_again
from seawall.replay.replay_results import BoxReplay
from seawall.sources.box_source import box_time, whole_span
from seawall.views.document import head, taken_at, with_unread

_CONFIG_MOST: Final = 256 << 10


class GuardReplayVerb(Verb[BoxReplay]):
    """The decisions of one black box, once more."""

    name = "guard-replay"
    text_view = "seawall.replay.replay_text:lines"
    document_table = "seawall.replay.replay_document:REPLAY"

    def page(self) -> BoxReplay:
        """UsageProblem when the box, the time or the settings are unusable."""
        asked = self.arguments
        policy = policy_at(asked.config) if asked.config else None
        path = asked.file or BOX
        check_is_there(path)
        box = Box.open(path)
        span = whole_span(box)
        moment = box_time(box, asked.at, span) if asked.at else None
        return _judged(box, policy, asked.config or "", moment)

    def head(self, page: BoxReplay) -> Head:
        """Of the machine that was recorded, not of this one."""
        last = page.boots[-1] if page.boots else None
        start = last.start if last is not None else None
        host = {
            "node": start and start.host,
            "boot_id": last and last.boot_id,
            "kernel": start and start.kernel,
            "page_size": None,
        }
        top = head(self.name, Unread("kernel", "not_captured"), None)
        moment = None if last is None else taken_at(last.last_unix_seconds)
        return {**top, **with_unread({"taken_at": moment}), "host": with_unread(host)}


run = GuardReplayVerb.run


def _judged(box: Box, policy: Settings | None, path: str, moment: float | None) -> BoxReplay:
    """A full box takes many seconds: it says how far it is."""
    progress, numbers = ProgressLine("guard replay"), itertools.count(1)

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
