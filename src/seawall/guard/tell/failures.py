# SPDX-License-Identifier: Apache-2.0
"""What the aide was asked for and could not do, in words: said once, shown until it could."""

from typing import Any, Final

from seawall.guard.tell.plain import plain

KINDS: Final = {
    "run": "run_after_kill",
    "hook": "run_on_decision",
    "termination_message": "no termination message",
    "job_output": "no line in the job's output",
    "job_command": "Slurm was not told",
    "textfile": "no textfile",
    "kmsg": "no line in the kernel's log",
    "hold": "not all that it executes is kept in memory for it",
}
"""Of its answers, and how a failure of each begins."""
_MOST: Final = 200
_CONFIG_MOST: Final = 400


class Failures:
    """The last failure of each kind."""

    __slots__ = ("_words",)

    def __init__(self) -> None:
        self._words: dict[str, str] = {}

    def learn(self, kind: str, answer: dict[str, Any] | None) -> str:
        """What is news, in words; empty: nothing is."""
        if answer is None:
            return ""
        words = _words(kind, answer)
        before, self._words[kind] = self._words.get(kind, ""), words
        return words if words != before else ""

    def hold(self, kind: str, words: str) -> bool:
        """Of what the aide is not asked for: so until it is told otherwise; empty: it is well.
        Whether that is news.
        """
        before, self._words[kind] = self._words.get(kind, ""), plain(words, _CONFIG_MOST)
        return self._words[kind] != before

    def is_held(self, kind: str) -> bool:
        """The last one of its kind failed."""
        return bool(self._words.get(kind))

    @property
    def words(self) -> list[str]:
        """The failures that still hold, in words."""
        return [words for words in self._words.values() if words]


def _words(kind: str, answer: dict[str, Any]) -> str:
    """Of which decision too: the next one's failure is news, though it fails in the same way."""
    problem = plain(str(answer.get("problem") or ""), _MOST)
    if not problem:
        return ""
    decision = plain(str(answer.get("decision") or ""), 64)
    whose = f" of {decision}" if decision else ""
    failed = answer.get("failed", 1)
    many = f" (the last of {failed} that failed)" if isinstance(failed, int) and failed > 1 else ""
    return f"{KINDS[kind]}{whose}: {problem}{many}"
