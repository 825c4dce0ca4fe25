# SPDX-License-Identifier: Apache-2.0
"""The OCI image, without a registry and without a daemon: Debian's python3 with its standard
library, from packages pinned in packaging/image-amd64.lock, seawall, and the libraries of its
observer, by the sums in requirements-dev.lock.  No shell, no apt.

``python -m release.image --pin`` pins the versions that the archive has now.  For another machine:
the same recipe on a Debian 12 of that kind, with a lock of its own; tried on amd64 alone.
"""

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any, Final

from release.shipped_files import REPOSITORY, epoch_seconds, shipped_files
from seawall.version import VERSION

NAME: Final = f"seawall:{VERSION}"
MACHINE: Final = "amd64"
LOCK: Final = REPOSITORY / f"packaging/image-{MACHINE}.lock"
WHEELS_LOCK: Final = REPOSITORY / "requirements-dev.lock"
WHEELS: Final = ("msgspec", "prometheus-client", "urllib3")
"""What `seawall cluster controller` imports, and nothing that runs on a node does."""
_LIBRARIES: Final = "x86_64-linux-gnu"
_LOADER: Final = "usr/lib64/ld-linux-x86-64.so.2"
_LEFT_OUT: Final = (
    "usr/share/man", "usr/share/locale", "usr/share/lintian", "usr/share/bug", "usr/share/pixmaps",
    "usr/share/applications", f"usr/lib/{_LIBRARIES}/gconv", "usr/lib/python3/dist-packages",
    "usr/share/python3", "etc/ld.so.conf.d",
)  # fmt: skip
_MERGED: Final = ("bin", "sbin", "lib", "lib64")
_FOLDERS: Final = ("dev", "etc", "host", "proc", "root", "run", "sys", "tmp", "var/lib/seawall")
_USERS: Final = (
    "root:x:0:0:root:/root:/usr/sbin/nologin\nnobody:x:65534:65534::/:/usr/sbin/nologin\n"
)
_OCI: Final = "application/vnd.oci.image"


class NoSuchPackage(Exception):
    """A pinned version that the archive does not have any more."""


def build(folder: Path) -> list[Path]:
    """The image as an OCI layout in a tar, and its SBOM (SPDX 2.3)."""
    if not shutil.which("apt-get") or os.uname().machine != "x86_64":
        raise NoSuchPackage("the image is made on Debian, of its packages for amd64")
    folder.mkdir(parents=True, exist_ok=True)
    pinned = pinned_packages()
    wheels = wheel_files()
    bill = json.dumps(_bill_of_materials(pinned, wheels), indent=1, sort_keys=True).encode()
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        root.chmod(0o755)
        _fill_base(root, pinned)
        base = _layer(root, set())
        before = {str(path.relative_to(root)) for path in root.rglob("*")}
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(root / "usr/lib/seawall")
        _compile(root, "usr/lib/seawall")
        libraries = _layer(root, before)
        before = {str(path.relative_to(root)) for path in root.rglob("*")}
        _fill_own(root, bill)
        own = _layer(root, before)
    image, sbom = (
        folder / f"seawall-image-{MACHINE}.tar",
        folder / f"seawall-image-{MACHINE}.spdx.json",
    )
    image.write_bytes(_layout([base, libraries, own]))
    sbom.write_bytes(bill)
    return [image, sbom]


def pinned_packages() -> list[tuple[str, str, str]]:
    """Name, version and sum, as the lock has them."""
    lines = LOCK.read_text().splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return [(name, version, digest) for name, version, digest in rows]


def package_file(name: str, version: str, digest: str) -> Path:
    """From the cache or the archive; NoSuchPackage: it is not there any more."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "seawall/debs"
    cache.mkdir(parents=True, exist_ok=True)
    path = cache / f"{digest}.deb"
    if not path.exists():
        with tempfile.TemporaryDirectory() as place:
            subprocess.run(
                ["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download",
                 f"{name}={version}"],
                cwd=place, check=False, capture_output=True,
            )  # fmt: skip
            found = list(Path(place).glob("*.deb"))
            if not found or hashlib.sha256(found[0].read_bytes()).hexdigest() != digest:
                raise NoSuchPackage(
                    f"{name} {version} is not in the archive (apt-get update first); other "
                    "versions are pinned by: python -m release.image --pin"
                )
            shutil.copy(found[0], path)
    return path


def wheel_files() -> list[Path]:
    """Of WHEELS for the image's Python, from the cache or the index; NoSuchPackage."""
    lines = WHEELS_LOCK.read_text().replace("\\\n", " ").splitlines()
    wanted = [line for line in lines if line.startswith(tuple(f"{name}==" for name in WHEELS))]
    if len(wanted) != len(WHEELS):
        raise NoSuchPackage(f"{WHEELS_LOCK.name} does not name {', '.join(WHEELS)} once each")
    text = "\n".join(wanted) + "\n"
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "seawall"
    folder = cache / f"wheels-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    if len(list(folder.glob("*.whl"))) != len(WHEELS):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "wanted.txt").write_text(text)
        done = subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
             "--no-deps", "--require-hashes", "--only-binary", ":all:", "--python-version", "3.11",
             "--implementation", "cp", "--platform", "manylinux_2_28_x86_64",
             "--platform", "manylinux2014_x86_64", "--dest", folder, "-r", folder / "wanted.txt"],
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode:
            raise NoSuchPackage(f"the observer's libraries: {done.stderr.strip()[-300:]}")
    return sorted(folder.glob("*.whl"))


def pin() -> None:
    """Write the lock anew, of what ``apt-get download`` brings now."""
    notes = [line for line in LOCK.read_text().splitlines() if line.startswith("#")]
    rows = []
    with tempfile.TemporaryDirectory() as place:
        names = [name for name, _, _ in pinned_packages()]
        subprocess.run(["apt-get", "-q", "download", *names], cwd=place, check=True)
        for path in sorted(Path(place).glob("*.deb")):
            what = ("dpkg-deb", "--show", "--showformat=${Package} ${Version}", str(path))
            told = subprocess.run(what, capture_output=True, text=True, check=True).stdout
            rows.append(f"{told} {hashlib.sha256(path.read_bytes()).hexdigest()}")
    LOCK.write_text("\n".join([*notes, *rows]) + "\n")


def _fill_base(root: Path, pinned: list[tuple[str, str, str]]) -> None:
    for name in (*_FOLDERS, "var/lib/dpkg/status.d"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    for name in _MERGED:
        (root / "usr" / name).mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(f"usr/{name}")
    for name, version, digest in pinned:
        path = package_file(name, version, digest)
        unpack = 'dpkg-deb --fsys-tarfile "$0" | tar -x --keep-directory-symlink -C "$1"'
        subprocess.run(["sh", "-c", unpack, path, root], check=True)
        control = subprocess.run(["dpkg-deb", "--field", path], capture_output=True, check=True)
        (root / "var/lib/dpkg/status.d" / name).write_bytes(control.stdout)  # what scanners read
    for left in _LEFT_OUT:
        shutil.rmtree(root / left, ignore_errors=True)
    for path in (root / "usr/share/doc").rglob("*"):
        if path.is_file() and path.name != "copyright":
            path.unlink()
    (root / "etc/passwd").write_text(_USERS)
    (root / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")
    _compile(root, "usr/lib/python3.11")


def _fill_own(root: Path, bill: bytes) -> None:
    for name, path in shipped_files().items():
        target = root / "usr/lib/seawall" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    shutil.copy(REPOSITORY / "packaging/seawall", root / "usr/bin/seawall")
    (root / "usr/share/sbom").mkdir()
    (root / "usr/share/sbom/seawall.spdx.json").write_bytes(bill)
    _compile(root, "usr/lib/seawall")


def _compile(root: Path, folder: str) -> None:
    """By the image's own Python, which needs no root for that: the image can only be read."""
    words = [
        root / _LOADER, "--library-path", root / "usr/lib" / _LIBRARIES,
        root / "usr/bin/python3.11", "-S", "-B", "-m", "compileall", "-q",
        "--invalidation-mode", "unchecked-hash", "-s", root, "-p", "/", root / folder,
    ]  # fmt: skip
    environment = {"PYTHONHOME": str(root / "usr"), "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"}
    # -B: what it imports itself would be written with this folder's name, and as if by chance.
    # Of the standard library some files are templates, which no Python compiles.
    subprocess.run([str(word) for word in words], env=environment, check=False, timeout=300)


def _layer(root: Path, before: set[str]) -> bytes:
    """What is new below ``root``, as an uncompressed tar: names sorted, root's, of one time."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(root.rglob("*")):
            name = str(path.relative_to(root))
            if name in before:
                continue
            entry = archive.gettarinfo(path, name)
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = "root"
            entry.mtime = epoch_seconds()
            if name != "tmp" and not entry.issym():
                is_open = entry.isdir() or entry.mode & 0o111
                entry.mode = 0o755 if is_open else 0o644
            if entry.isreg():
                with path.open("rb") as file:
                    archive.addfile(entry, file)
            else:
                archive.addfile(entry)
    return out.getvalue()


def _layout(layers: list[bytes]) -> bytes:
    packed = [gzip.compress(layer, 6, mtime=0) for layer in layers]
    config = _json({
        "architecture": MACHINE, "os": "linux", "created": _written(),
        "config": {
            "Entrypoint": ["/usr/bin/seawall"], "Cmd": ["why"],
            "Env": ["PATH=/usr/bin", "LC_ALL=C.UTF-8"],
            "Labels": {
                "org.opencontainers.image.title": "seawall",
                "org.opencontainers.image.version": VERSION,
                "org.opencontainers.image.licenses": "Apache-2.0 AND MIT",
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [_digest(layer) for layer in layers]},
    })  # fmt: skip
    manifest = _json({
        "schemaVersion": 2, "mediaType": f"{_OCI}.manifest.v1+json",
        "config": _described(f"{_OCI}.config.v1+json", config),
        "layers": [_described(f"{_OCI}.layer.v1.tar+gzip", layer) for layer in packed],
    })  # fmt: skip
    names = {"io.containerd.image.name": f"docker.io/library/{NAME}",
             "org.opencontainers.image.ref.name": VERSION}  # fmt: skip
    described = {**_described(f"{_OCI}.manifest.v1+json", manifest), "annotations": names}
    described["platform"] = {"architecture": MACHINE, "os": "linux"}
    files = {
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        "index.json": _json({"schemaVersion": 2, "manifests": [described]}),
    }
    for blob in (config, manifest, *packed):
        files[f"blobs/sha256/{hashlib.sha256(blob).hexdigest()}"] = blob
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(content), epoch_seconds(), 0o644
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def _bill_of_materials(pinned: list[tuple[str, str, str]], wheels: list[Path]) -> dict[str, Any]:
    own = {"name": "seawall", "SPDXID": "SPDXRef-seawall", "versionInfo": VERSION}
    own |= {"licenseDeclared": "Apache-2.0 AND MIT", "downloadLocation": "NOASSERTION"}
    rows: list[dict[str, Any]] = [{**own, "filesAnalyzed": False}]
    rows += [
        {
            "name": name, "SPDXID": f"SPDXRef-{name}", "versionInfo": version,
            "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "checksums": [{"algorithm": "SHA256", "checksumValue": digest}],
            "externalRefs": [{
                "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                "referenceLocator": f"pkg:deb/debian/{name}@{version}?arch={MACHINE}",
            }],
        }
        for name, version, digest in pinned
    ]  # fmt: skip
    for wheel in wheels:
        name, version = wheel.name.split("-")[:2]
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        rows.append({
            "name": name, "SPDXID": f"SPDXRef-pypi-{name.replace('_', '-')}",
            "versionInfo": version, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "checksums": [{"algorithm": "SHA256", "checksumValue": digest}],
            "externalRefs": [{
                "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                "referenceLocator": f"pkg:pypi/{name.replace('_', '-')}@{version}",
            }],
        })  # fmt: skip
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"seawall-image-{VERSION}-{MACHINE}",
        "documentNamespace": f"urn:seawall:image:{VERSION}:{MACHINE}:{epoch_seconds()}",
        "creationInfo": {"created": _written(), "creators": ["Tool: seawall-release"]},
        "packages": rows,
        "relationships": [
            {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
             "relatedSpdxElement": row["SPDXID"]}
            for row in rows
        ],
    }  # fmt: skip


def _described(kind: str, blob: bytes) -> dict[str, Any]:
    return {"mediaType": kind, "digest": _digest(blob), "size": len(blob)}


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _written() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch_seconds()))


if __name__ == "__main__" and sys.argv[1:] == ["--pin"]:
    pin()
