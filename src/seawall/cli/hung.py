# SPDX-License-Identifier: Apache-2.0
"""What is said when a worker was left behind: one question never came back.

Nothing that reads us may take it for "healthy", and nothing may be appended to an answer that
was half given: then it goes to stderr, and the status says so.
"""

import sys
from argparse import Namespace
from typing import Any, Final

from seawall.cli import statuses
from seawall.cli.source_options import SLOT
from seawall.host.host import Unread
from seawall.views.document import head, render
from seawall.views.terminal import plain

_NOTHING_JUDGED: Final[dict[str, Any]] = {
    "findings": [], "order": [], "recent_events": None, "muted": [], "bundle_notes": [],
}  # fmt: skip
_JUDGING_VERBS: Final = ("why", "check")


def tell(arguments: Namespace, *, has_spoken: bool) -> int:
    """Say what was not reached, in the form that was asked for; the exit status."""
    question = plain(SLOT.read()) or "its own code"
    why = f"no answer within --timeout {arguments.timeout:g} s; the reader was left behind"
    if getattr(arguments, "npd", False):
        print(f"{arguments.id}: could not judge: no answer in {arguments.timeout:g} s"[:80])
        return statuses.NPD_UNKNOWN
    if arguments.verb == "capture" or (has_spoken and getattr(arguments, "json", False)):
        sys.stderr.write(f"seawall: {question}: {why}\n")
        return statuses.USAGE
    if getattr(arguments, "json", False):
        if arguments.verb not in _JUDGING_VERBS:
            sys.stderr.write(f"seawall: {question}: {why}\n")
            return statuses.USAGE
        row = {"what": question, "why": why, "provide": "a longer --timeout"}
        page = head(arguments.verb, Unread("kernel", "not_reached", why), None)
        print(render({**page, **_NOTHING_JUDGED, "could_not_see": [row]}))
    else:
        print(f"\nCould not see\n  {question}: {why}")
    return statuses.BLIND if getattr(arguments, "fail_on", None) else 0
