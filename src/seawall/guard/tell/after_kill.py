# SPDX-License-Identifier: Apache-2.0
"""What the aide is asked for once somebody was killed: the termination message, the command."""

from collections.abc import Iterator
from typing import Any

from seawall.actions.orders import Outcome
from seawall.guard.settings import Settings
from seawall.guard.tell import guard_sentences
from seawall.guard.tell.plain import moment


def requests(
    settings: Settings, o: Outcome, sentence: str, unix_seconds: float, about: bytes
) -> Iterator[dict[str, Any]]:
    """``sentence``: why; ``about``: the outcome's line of the journal, for the command."""
    target = o.order.target
    if settings.termination_message:
        words = guard_sentences.for_the_container(o, sentence, moment(unix_seconds))
        yield {"do": "termination_message", "cgroup": target.path, "name": target.name,
               "decision": o.order.decision, "words": words, "unix_seconds": unix_seconds,
               "kubelet_root": settings.kubelet_root}  # fmt: skip
    if settings.run_after_kill:
        yield {"do": "run", "command": settings.run_after_kill, "decision": o.order.decision,
               "stdin": about.decode()}  # fmt: skip
