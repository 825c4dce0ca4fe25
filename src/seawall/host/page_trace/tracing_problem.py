# SPDX-License-Identifier: Apache-2.0
"""The one error of the tracer: it cannot trace here, and why, in words for people."""

from typing import Final

from seawall.host.host import Why

WORDS_MOST: Final = 300


class TracingProblem(OSError):
    """``why`` is the word of an :class:`~seawall.host.host.Unread`; ``words`` one sentence."""

    def __init__(self, why: Why, words: str, path: str = "tracefs") -> None:
        super().__init__(words)
        self.why: Why = why
        self.words = words[:WORDS_MOST]
        self.path = path
