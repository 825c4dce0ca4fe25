# SPDX-License-Identifier: Apache-2.0
"""Writing a bundle; its layout is told in ``bundle.py``."""

import io
import json
import os
import re
import tarfile
from collections.abc import Sequence
from typing import IO, Final

from seawall.host.bundle import SCHEMA
from seawall.host.host import JSON, Unread
from seawall.host.recording import Round

_ONE_OF_MANY: Final = re.compile("/proc/[0-9]|/sys/fs/cgroup/.+/.+/")
_ESCAPED: Final = re.compile(rb"[^!-$&-~]")


def write_bundle(rounds: Sequence[Round], manifest: dict[str, JSON], out: IO[bytes]) -> None:
    """Write the rounds to ``out``, which need not be seekable."""
    with tarfile.open(fileobj=out, mode="w|gz", format=tarfile.PAX_FORMAT) as archive:
        unchanged = [
            _unchanged(round_, rounds[number - 1] if number else None)
            for number, round_ in enumerate(rounds)
        ]
        # Without a count a cut between two members would go unnoticed.
        files = [len(_contents(r, same)) for r, same in zip(rounds, unchanged, strict=True)]
        counts = {"rounds": len(rounds), "files": sum(files), "files_of_pass": files}
        head = {"schema": SCHEMA, **manifest, **counts}
        _add(archive, "MANIFEST.json", _document(head))
        for number, (round_, same) in enumerate(zip(rounds, unchanged, strict=True), start=1):
            _add(archive, f"{number}/answers.json", _document(_answers(round_, sorted(same))))
            for path, content in _contents(round_, same):
                _add(archive, f"{number}/files{_escape(path)}", content)


def _unchanged(round_: Round, before: Round | None) -> set[str]:
    """The files that hold what they held a pass earlier; they are stored once."""
    if before is None:
        return set()
    return {
        path
        for path, answer in round_.files.items()
        if isinstance(answer, bytes) and before.files.get(path) == answer
    }


def _contents(round_: Round, same: set[str]) -> list[tuple[str, bytes]]:
    """What has to be stored of a pass: the node's own files first, for it may be cut."""
    found = [
        (path, answer)
        for path, answer in round_.files.items()
        if isinstance(answer, bytes) and path not in same
    ]
    return sorted(found, key=lambda pair: (_ONE_OF_MANY.match(pair[0]) is not None, pair[0]))


def _document(document: object) -> bytes:
    return json.dumps(document, indent=1, ensure_ascii=True).encode() + b"\n"


def _answers(round_: Round, same: list[str]) -> dict[str, object]:
    """What of a round is not a file's content."""
    return {
        "unread": _reasons(round_.files),
        "names": {k: _plain(v) for k, v in round_.names.items()},
        "links": {k: _plain(v) for k, v in round_.links.items()},
        "probes": [[*k, _plain(v)] for k, v in round_.probes.items()],
        "same": same,
    }


def _reasons(files: dict[str, bytes | Unread]) -> dict[str, list[str]]:
    return {path: [v.why, v.detail] for path, v in files.items() if isinstance(v, Unread)}


def _plain(answer: object) -> object:
    return {"!unread": [answer.why, answer.detail]} if isinstance(answer, Unread) else answer


def _escape(path: str) -> str:
    """A member name that any tool can print and unpack: unusual bytes as %XX."""
    raw = os.fsencode(path)
    return _ESCAPED.sub(lambda match: b"%%%02X" % match[0][0], raw).decode("ascii")


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    member.mode = 0o600
    archive.addfile(member, io.BytesIO(data))
