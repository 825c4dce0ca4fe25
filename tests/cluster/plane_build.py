"""Builds the control plane of tests/cluster/plane: ``python -m tests.cluster.plane_build``.

What is built lies in ~/.cache/seawall/plane-VERSION-KEY, whose key is of the module's content:
after an edit, or in a second clone, nobody gets the other's.  Exit status 75: it cannot be built
here, for there is no Go.
"""

import argparse
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

MODULE = Path(__file__).parent / "plane"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "seawall"
DEFAULT = "1.37"
VERSIONS = ["1.34", DEFAULT]
"""Kubernetes versions that have a lock of modules here."""
TAGS = {"1.34": "nokwok"}
"""No kwok compiles with the libraries of that version; the default's one speaks to it."""
PROGRAMS = {"plane": ".", "kubelet": "./kubelet"}
CANNOT = 75


class PlaneProblem(Exception):
    """It was not built, and why."""


class NoGo(PlaneProblem):
    """It cannot be built here: whoever needs it is skipped."""


def version_wanted() -> str:
    """Minor version of Kubernetes, from SEAWALL_KUBERNETES (`make KUBERNETES=…`)."""
    version = os.environ.get("SEAWALL_KUBERNETES") or DEFAULT
    if version not in VERSIONS:
        raise PlaneProblem(f"Kubernetes {version}: there are locks for {', '.join(VERSIONS)}")
    return version


def module_file(version: str) -> str:
    return "go.mod" if version == DEFAULT else f"go-{version}.mod"


def folder(version: str) -> Path:
    """Where the programs of this version are, once they are built."""
    lock = module_file(version)
    digest = hashlib.sha256()
    sources = sorted(MODULE.rglob("*.go"))
    for path in (MODULE / lock, MODULE / lock.replace(".mod", ".sum"), *sources):
        digest.update(path.read_bytes() + b"\0")
    return CACHE / f"plane-{version}-{digest.hexdigest()[:16]}"


def built(version: str, program: str = "plane") -> Path | None:
    path = folder(version) / program
    return path if path.exists() else None


def programs(version: str) -> tuple[Path, Path]:
    """The control plane, and the one whose kwok plays kubelets for it; PlaneProblem: not built."""
    kwok_version = DEFAULT if version in TAGS else version
    found = built(version), built(kwok_version)
    for path, wanted in zip(found, (version, kwok_version), strict=True):
        if path is None:
            raise PlaneProblem(f"no control plane of {wanted} is built: make plane (needs Go)")
    plane, kwok = found
    assert plane is not None
    assert kwok is not None
    return plane, kwok


def build(version: str, program: str) -> Path:
    """The program, from the cache where it is there; two that want it at once build it once."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"plane-{version}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return built(version, program) or compiled(version, program)


def compiled(version: str, program: str) -> Path:
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        raise NoGo("no Go: the control plane for tests/cluster is not built")
    there = folder(version) / program
    there.parent.mkdir(exist_ok=True)
    text = (MODULE / module_file(version)).read_text()
    (full,) = re.findall(r"^\tk8s\.io/kubernetes (v\S+)$", text, re.MULTILINE)
    major, minor = full[1:].split(".")[:2]
    told = {"gitVersion": full, "gitMajor": major, "gitMinor": minor}
    flags = " ".join(f"-X k8s.io/component-base/version.{key}={told[key]}" for key in told)
    print(f"building {program} of Kubernetes {full}: 14 minutes cold on two cores", flush=True)
    began = time.monotonic()
    done = subprocess.run(
        ["nice", go, "build", f"-modfile={module_file(version)}", "-mod=readonly", "-trimpath",
         "-tags", TAGS.get(version, ""),
         "-ldflags", f"-s -w {flags}", "-o", f"{there}.new", PROGRAMS[program]],
        cwd=MODULE, env={**os.environ, "CGO_ENABLED": "0"}, check=False,
    )  # fmt: skip
    if done.returncode:
        raise PlaneProblem(f"go build of {program} ended with {done.returncode}, see above")
    os.replace(f"{there}.new", there)
    print(f"built {there} in {time.monotonic() - began:.0f} s", flush=True)
    return there


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", default=["plane"], help="plane (if none), kubelet")
    try:
        for program in parser.parse_args().programs:
            print(build(version_wanted(), program))
            if program == "plane" and version_wanted() in TAGS:
                print(build(DEFAULT, program))
    except PlaneProblem as problem:
        print(problem, file=sys.stderr)
        return CANNOT if isinstance(problem, NoGo) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
