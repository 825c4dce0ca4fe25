# SPDX-License-Identifier: Apache-2.0
"""sinfo and scontrol of a node's check, each asked by a child with a deadline: slurmctld, munge or
the file system that the commands lie on may hang, and then the child is left behind.
"""

import base64
from collections.abc import Mapping
from typing import Final

from seawall.host.background_question import BackgroundQuestion
from seawall.host.host import JSON, Unread
from seawall.host.slurm_commands import SlurmCommandProblem, SlurmCommands
from seawall.problems import ParseProblem
from seawall.readings.slurm_node_rows import COMMAND, SlurmNodeRow, parse

_SPARE_SECONDS: Final = 0.5
_BYTES_MOST: Final = 8 << 20


class SlurmctldCommands:
    """What is asked of slurmctld and told to it; ``folders``: where its commands are."""

    def __init__(self, folders: str, seconds: float, conf: str = "") -> None:
        self.seconds = seconds
        self._commands = SlurmCommands(
            conf, folders=folders, environment={"SLURM_TIME_FORMAT": "%s"}, ends_with_us=True
        )

    def nodes(self) -> Mapping[str, SlurmNodeRow]:
        """All nodes now; SlurmCommandProblem."""
        data = self._output(*COMMAND)
        try:
            rows = parse(data)
        except ParseProblem as problem:
            raise SlurmCommandProblem(f"sinfo: {problem}") from problem
        if not rows:
            raise SlurmCommandProblem("sinfo names no node")
        return rows

    def update(self, node: str, **fields: str) -> None:
        """Change these of one node in one request; after SlurmCommandProblem it may be done."""
        words = [f"{name}={value}" for name, value in fields.items()]
        self._output("scontrol", "update", f"NodeName={node}", *words)

    def _output(self, *words: str) -> bytes:
        def ask() -> JSON:
            try:
                out = self._commands.output(*words, seconds=self.seconds, bytes_most=_BYTES_MOST)
            except SlurmCommandProblem as problem:
                return str(problem)
            return [base64.b64encode(out).decode()]

        try:
            question = BackgroundQuestion(words[0], ask, self.seconds + _SPARE_SECONDS)
        except OSError as error:
            raise SlurmCommandProblem(f"{words[0]}: {error.strerror}") from error
        answer = question.answer()
        if isinstance(answer, Unread):
            raise SlurmCommandProblem(f"{words[0]}: {answer.detail}")
        if isinstance(answer, list):
            return base64.b64decode(str(answer[0]))
        raise SlurmCommandProblem(str(answer))
