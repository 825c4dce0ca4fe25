# SPDX-License-Identifier: Apache-2.0
"""Why tracefs cannot be had, in words: lockdown, a console that prints events, another clock."""

import errno
import os
from pathlib import Path

import pytest

from seawall.host.page_trace import tracefs
from seawall.host.page_trace.tracing_problem import TracingProblem


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gets as far: sudo make test")
def test_a_kernel_that_prints_its_events_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "prints").write_text("1\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tracefs, "_PRINTS", str(tmp_path / "prints"))
        patch.setattr(tracefs, "_namespace", lambda _: "")
        with pytest.raises(TracingProblem, match="tracepoint_printk"):
            tracefs.attach()
        patch.setattr(tracefs, "_namespace", lambda kind: f"{kind}:[1]" if kind == "time" else "")
        with pytest.raises(TracingProblem, match="time namespace"):
            tracefs.attach()


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ("none integrity [confidentiality]\n", r"the kernel is locked down \(confidentiality\)"),
        ("none [integrity] confidentiality\n", "tracefs is there and may not be read"),
        (None, "tracefs is there and may not be read"),
    ],
)
def test_lockdown_is_told_where_nobody_mounted_securityfs(
    told: str | None, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container; a lockdown lets tracefs be mounted, and nothing of it be opened."""
    if told is not None:
        (tmp_path / "lockdown").write_text(told)
    monkeypatch.setattr(tracefs, "_LOCKDOWN", str(tmp_path / "none"))
    monkeypatch.setattr(tracefs, "_detached", lambda _: os.open(tmp_path, tracefs.FOLDER))
    root, opened = os.open(tmp_path, tracefs.FOLDER), os.open

    def refused(path: str, *arguments: int, **where: int) -> int:
        if path in ("trace_clock", "instances"):
            raise PermissionError(errno.EPERM, "Operation not permitted")
        return opened(path, *arguments, **where)

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(TracingProblem, match=words):
        tracefs._checked(root)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount: sudo make test")
def test_securityfs_is_asked_without_a_mount() -> None:
    try:
        folder = tracefs._detached(b"securityfs")
    except OSError as error:
        pytest.skip(f"this machine refuses it: {error.strerror}")
    try:
        assert "[" in tracefs.read_text("lockdown", folder)
    finally:
        os.close(folder)
