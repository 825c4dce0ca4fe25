"""The program on docs/blackbox-format.md reads a box without Seawall."""

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.blackbox.boxes import box_at, filled, spoil

PAGE = Path(__file__).parents[2] / "docs" / "blackbox-format.md"


def test_the_program_on_the_page_reads_every_frame(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    frames = filled(path, 2500)
    with box_at(path) as box:
        kept = {head.sequence for head in box.heads[1:]}
        spoil(path, box.heads[0].offset + 100, bytes(50))
    assert 1 not in kept, "it never lapped"
    match = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert match
    assert match[1].count("\n") <= 24
    (tmp_path / "program.py").write_text(match[1])
    done = subprocess.run(
        [sys.executable, "-I", "-S", "program.py", "blackbox"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    shown = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row[0] for row in shown] == sorted(kept)
    for sequence, unix, boot, tick, kind, body in shown:
        wanted = frames[sequence]
        assert (unix, tick, kind, body) == (
            wanted.unix_seconds, wanted.tick, wanted.kind, wanted.body,
        )  # fmt: skip
        assert boot == wanted.boot_id.replace("-", "")
