# SPDX-License-Identifier: Apache-2.0
"""From what ``seawall check --slurm`` found to a drain, or to the words why there is none."""

import os
import time
from collections.abc import Collection
from typing import Final

from seawall.accounts.slurm_health import SlurmHealth
from seawall.actions.drain_record import DrainRecord, load, path_of, save
from seawall.actions.slurm_drain import DrainCause, DrainDecision
from seawall.actions.slurmctld_commands import SlurmctldCommands
from seawall.cli.node_look import UNTIL_BOOT
from seawall.cli.slurm_file import SlurmSettings
from seawall.proc.file_lock import try_lock

_BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"


def decide(
    settings: SlurmSettings, found: SlurmHealth, node: str, names: Collection[str]
) -> list[str]:  # fmt: skip
    """Drain, lift or leave alone, in words.

    ``node``: SLURMD_NODENAME, which slurmd gives its programs; whoever calls the check by hand has
    none, and drains nothing.  ``names``: the checks that were made; a drain is lifted only
    after all for which one can be made.
    """
    if not node:
        return [] if not found.problems else ["not drained: this is not slurmd's call"]
    try:
        path = path_of(settings.records, node)
    except ValueError:
        return ["not drained: SLURMD_NODENAME is no node's name"]
    lock, trouble = _lock(path)
    if lock is None and not trouble:
        return ["not drained: another check of this node is at work"]
    record, before = load(path), load(path)
    causes = [
        DrainCause(
            key=problem.key, words=f"{problem.kind}: {problem.words}",
            is_lasting=problem.is_lasting, is_until_boot=problem.kind in UNTIL_BOOT,
        )
        for problem in found.problems if settings.mode(problem.kind) == "drain"
    ]  # fmt: skip
    is_blind = any(settings.mode(kind) == "drain" for kind, _ in found.unseen)
    is_blind |= any(mode == "drain" and kind not in names for kind, mode in settings.modes.items())

    def keep(changed: DrainRecord) -> None:
        save(path, changed)

    decision = DrainDecision(
        SlurmctldCommands(settings.folders, settings.seconds, settings.conf),
        record,
        node,
        settings.limits,
        keep,
        _boot_id(),
    )
    words = decision.run(causes, is_well=not causes and not is_blind, now=time.time())
    try:
        if record != before:
            save(path, record)
    except OSError as error:
        words.append(f"{path}: {error.strerror}: what was drained is not lifted from here")
    if lock is not None:
        os.close(lock)
    return words


def _lock(path: str) -> tuple[int | None, str]:
    """The locked file; None and words where there can be none, e.g. on a read-only disk."""
    try:
        os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
        fd = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        return None, error.strerror or "no lock"
    if try_lock(fd):
        return fd, ""
    os.close(fd)
    return None, ""


def _boot_id() -> str:
    try:
        with open(_BOOT_ID, encoding="ascii") as file:
            return file.read(64).strip()
    except (OSError, ValueError):
        return ""
