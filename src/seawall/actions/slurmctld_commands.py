# SPDX-License-Identifier: Apache-2.0
"""sinfo and scontrol, each in a child with a deadline: slurmctld, munge or the file system that the
commands lie on may hang, and then the child is left behind.
"""

import base64
import os
from collections.abc import Mapping, Sequence
from typing import Final

from seawall.host.background_question import BackgroundQuestion
from seawall.host.host import Unread
from seawall.problems import ParseProblem
from seawall.proc.parent_death import die_with_parent
from seawall.readings.slurm_node_rows import COMMAND, SlurmNodeRow, parse

FOLDERS: Final = "/usr/bin:/usr/local/bin:/opt/slurm/bin:/usr/sbin:/bin"
"""HealthCheckProgram is started without PATH."""
SECONDS: Final = 4.0
_SPARE_SECONDS: Final = 0.5
_ANSWER_BYTES_MOST: Final = 8 << 20
_ENVIRONMENT: Final = ("SLURM_CONF", "SLURM_CONF_SERVER", "SACK_KEY", "SACK_JWKS")


class SlurmSilent(Exception):
    """slurmctld gave no answer that can be used; the text says why."""


class SlurmctldCommands:
    """What is asked of slurmctld and told to it; ``folders``: where its commands are."""

    def __init__(
        self, folders: str = FOLDERS, seconds: float = SECONDS, conf: str = ""
    ) -> None:  # fmt: skip
        self._folders, self.seconds, self._conf = folders, seconds, conf

    def nodes(self) -> Mapping[str, SlurmNodeRow]:
        """All nodes now; SlurmSilent."""
        data = self._run(COMMAND)
        try:
            rows = parse(data)
        except ParseProblem as problem:
            raise SlurmSilent(f"sinfo: {problem}") from problem
        if not rows:
            raise SlurmSilent("sinfo names no node")
        return rows

    def update(self, node: str, **fields: str) -> None:
        """Change these of one node in one request; after SlurmSilent it may be done or not."""
        words = [f"{name}={value}" for name, value in fields.items()]
        self._run(["scontrol", "update", f"NodeName={node}", *words])

    def _run(self, words: Sequence[str]) -> bytes:
        kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        environment = {"PATH": self._folders, "LC_ALL": "C", "SLURM_TIME_FORMAT": "%s", **kept}
        if self._conf:
            environment["SLURM_CONF"] = self._conf
        seconds = self.seconds

        def ask() -> list[bool | int | float | str | None]:
            return _output(words, environment, seconds)  # type: ignore[return-value]

        try:
            question = BackgroundQuestion(words[0], ask, seconds + _SPARE_SECONDS)  # type: ignore[arg-type]
        except OSError as error:
            raise SlurmSilent(f"{words[0]}: {error.strerror}") from error
        answer = question.answer()
        if isinstance(answer, Unread):
            raise SlurmSilent(f"{words[0]}: {answer.detail}")
        match answer:
            case [0, str(data), _]:
                return base64.b64decode(data)
            case [int(status), _, str(said)]:
                raise SlurmSilent(f"{words[0]} ended with {status}: {said[:160].strip()}")
        raise SlurmSilent(f"{words[0]}: no such command in {self._folders}")


def _output(
    words: Sequence[str], environment: Mapping[str, str], seconds: float
) -> list[int | str]:  # fmt: skip
    """In the child: status, what it printed in base 64, and its complaint; empty without it."""
    import subprocess  # noqa: PLC0415 - slow to import, and only here

    parent = os.getpid()
    try:
        done = subprocess.run(  # noqa: S603 - in folders that root's own file names
            words, env=environment, stdin=subprocess.DEVNULL, capture_output=True, cwd="/",
            timeout=seconds, check=False, preexec_fn=lambda: die_with_parent(parent),
        )  # fmt: skip
    except FileNotFoundError:
        return []
    except subprocess.TimeoutExpired:
        return [-1, "", f"no answer in {seconds:g} s"]
    if len(done.stdout) > _ANSWER_BYTES_MOST:
        return [-1, "", "it printed too much"]
    return [
        done.returncode, base64.b64encode(done.stdout).decode(),
        done.stderr.decode("utf-8", "replace")[:500],
    ]  # fmt: skip
