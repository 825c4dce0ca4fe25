# SPDX-License-Identifier: Apache-2.0
r"""The grammar of cgroup paths: what each runtime and driver makes of a container's name.

Kubernetes, cgroupfs: ``/kubepods/burstable/podUID/ID`` (guaranteed pods directly below
``kubepods``); systemd: ``/kubepods.slice/kubepods-burstable.slice/
kubepods-burstable-podUID.slice/cri-containerd-ID.scope``, where ``-`` in a uid is ``_``.
Docker ``/docker/ID`` or ``docker-ID.scope``; Podman ``libpod-ID[.scope]``; LXC
``lxc.payload.NAME`` or ``/lxc/NAME``; machined ``machine-NAME.scope`` with systemd's ``\x2d``;
Kata ``kata_ID`` where the pod's sandbox would be; Slurm's jobs in ``slurmstepd.scope`` (v2) or
``/slurm/uid_N`` (v1).
Sources of the forms stand beside the recorded paths in tests/accounts/test_cgroup_paths.py.

A container can make cgroups below its own, and a user below ``user@UID.service``, under any
name: ``is_delegated`` marks what was found there, and no name of the host belongs to it.  Nor
does one to a batch job: whatever runs in it, its user chose.

Beside the layers and without ``dataclasses``: the guard holds it in locked memory too.
"""

import re
from typing import Final, Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["container", "pod", "unit", "slice", "cgroup", "root"]
Qos: TypeAlias = Literal["Guaranteed", "Burstable", "BestEffort"]

_CONTAINER: Final = re.compile(
    r"(?:(?P<prefix>[a-z][a-z0-9_-]{0,40})-)?(?P<id>[0-9a-f]{64})(?P<scope>\.scope)?\Z"
)
# containerd told to use cgroupfs by a kubelet that uses systemd writes all three in one name.
_UNSPLIT: Final = re.compile(r"(?P<slice>[^:]+\.slice):(?P<prefix>[a-z-]+):(?P<id>[0-9a-f]{64})\Z")
# Kata renames what would be the sandbox's where a path and not systemd names it.
_KATA: Final = re.compile(r"kata_(?P<id>[0-9a-f]{64})\Z")
_NAMED_SCOPE: Final = re.compile(r"(?P<runtime>runc|crun)-(?P<id>[A-Za-z0-9][\w+.-]*)\.scope\Z")
_POD_SLICE: Final = re.compile(
    r"(?:.+-)?kubepods(?:-(?P<qos>burstable|besteffort))?-pod(?P<uid>[A-Za-z0-9_]+)\.slice\Z"
)
_POD_FOLDER: Final = re.compile(r"pod(?P<uid>[A-Za-z0-9][A-Za-z0-9_.-]*)\Z")
_PODMAN_POD: Final = re.compile(r"(?:.+-)?libpod_pod_(?P<id>[0-9a-f]{64})\.slice\Z")
_PODMAN_ID: Final = re.compile(r"[0-9a-f]{64}")
_ESCAPED: Final = re.compile(r"\\x([0-9a-f]{2})")
_USER_MANAGER: Final = re.compile(r"user@\d+\.service\Z")
_USERS_SLICE: Final = re.compile(r"/user\.slice/user-(0|[1-9][0-9]{0,9})\.slice\Z")
_NSPAWN: Final = re.compile(r"systemd-nspawn@(?P<name>.+)\.service\Z")
_MACHINE: Final = re.compile(r"machine-(?P<name>.+)\.scope\Z")
_STEPD: Final = re.compile(r"(?:.+_)?slurmstepd\.scope\Z")
_SLURM: Final = re.compile(r"slurm(?:_.+)?\Z")
# By number; since 26.05 by Slurm's own id, in Crockford's base 32.
_JOB: Final = re.compile(r"(?:job_[0-9]+|s[0-9A-HJKMNP-TV-Z]{13})\Z")
_JOBS_USER: Final = re.compile(r"uid_[0-9]+\Z")
# What a pattern needs is looked for first: most names fit none of ten patterns, and a pattern that
# fails takes ten times as long.
_UNIT_ENDS: Final = (".service", ".scope", ".slice", ".socket", ".mount", ".swap")
_UNIT: Final = re.compile(rf".+(?:{'|'.join(map(re.escape, _UNIT_ENDS))})\Z")
_ID_LENGTH: Final = 64

_RUNTIMES: Final = {
    "cri-containerd": "containerd", "nerdctl": "containerd", "containerd": "containerd",
    "crio": "cri-o", "docker": "docker", "libpod": "podman",
}  # fmt: skip
_PARENT_RUNTIMES: Final = {
    "docker": "docker", "ecs": "docker", "default": "containerd", "libpod_parent": "podman",
}  # fmt: skip
_QOS: Final[dict[str | None, Qos]] = {
    "burstable": "Burstable", "besteffort": "BestEffort", None: "Guaranteed",
}  # fmt: skip


class CgroupPlace(NamedTuple):
    """What a path tells by itself."""

    kind: Kind
    cgroup: str
    """The workload's own cgroup: the path, or one above it."""
    runtime: str | None = None
    container_id: str | None = None
    machine: str | None = None
    """Name of an LXC container or a machine of systemd's; they have no id."""
    pod_uid: str | None = None
    qos: Qos | None = None
    unit: str | None = None
    """A user's unit with its manager before it: ``user@1000.service/foo.service``."""
    monitors: str | None = None
    """Id of the container that this conmon watches over."""
    is_delegated: bool = False
    """Below a container or a user's manager, who may have made up every name here."""
    is_machine: bool = False
    """A virtual machine's scope."""
    job: str | None = None
    """Slurm's, as its folder is called."""

    @property
    def tells_request(self) -> bool:
        """A Burstable container of the kubelet's own, which wrote oom_score_adj by its request."""
        return self.qos == "Burstable" and not self.is_delegated


def place_of(path: str) -> CgroupPlace:
    """The innermost workload that ``path`` belongs to, by its name alone."""
    walk = _Walk()
    for part in path.strip("/").split("/"):
        if part:
            walk.step(part)
    place = walk.place
    if place.kind == "pod" and place.cgroup != walk.here:
        return place._replace(kind="cgroup", cgroup=walk.here)  # somebody's whom we do not know
    return place


class _Walk:
    """From the root down, one component at a time."""

    def __init__(self) -> None:
        self.place = CgroupPlace(kind="root", cgroup="/")
        self.here = ""
        self.context: list[str] = []
        """Components since the root or since the container that encloses the rest."""
        self.manager = ""
        self.is_delegated = False

    def step(self, part: str) -> None:
        self.here += "/" + part
        before = self.place
        found = self._pod(part) or self._container(part) or self._job(part)
        if found is None and before.kind not in ("container", "pod"):
            found = self._system(part)
        self.place = found or before
        self.context.append(part)
        if found is not None and found.kind == "container":
            self.context = []
            self.is_delegated = True
        if not self.is_delegated and part.startswith("user@") and _USER_MANAGER.match(part):
            self.manager = part
            self.is_delegated = True

    # --- pods ---------------------------------------------------------------------------

    def _pod(self, part: str) -> CgroupPlace | None:
        if "kubepods" in part and (match := _POD_SLICE.match(part)):
            return self._kubernetes_pod(match["uid"].replace("_", "-"), match["qos"])
        if "libpod_pod_" in part and (match := _PODMAN_POD.match(part)):
            return self._at("pod", runtime="podman", pod_uid=match["id"])
        parents = self.context[-2:]
        if part.startswith("pod") and (match := _POD_FOLDER.match(part)):
            if parents[-1:] == ["kubepods"]:
                return self._kubernetes_pod(match["uid"], None)
            if len(parents) == 2 and parents[0] == "kubepods" and parents[1] in _QOS:
                return self._kubernetes_pod(match["uid"], parents[1])
        if parents[-1:] == ["libpod_parent"] and _PODMAN_ID.fullmatch(part):
            return self._at("pod", runtime="podman", pod_uid=part)
        return None

    def _kubernetes_pod(self, uid: str, qos: str | None) -> CgroupPlace:
        return self._at("pod", pod_uid=uid, qos=_QOS[qos])

    # --- containers ---------------------------------------------------------------------

    def _container(self, part: str) -> CgroupPlace | None:
        if len(part) >= _ID_LENGTH and (match := _CONTAINER.match(part)):
            return self._by_id(match["prefix"], match["id"], bool(match["scope"]))
        if ":" in part and (match := _UNSPLIT.match(part)):
            pod = _POD_SLICE.match(match["slice"])
            return self._at(
                "container", runtime=_RUNTIMES.get(match["prefix"]), container_id=match["id"],
                pod_uid=pod["uid"].replace("_", "-") if pod else None,
                qos=_QOS[pod["qos"]] if pod else None,
            )  # fmt: skip
        if part.startswith("kata_") and (match := _KATA.match(part)):
            return self._by_id(None, match["id"], is_scope=False)
        if part.startswith(("runc-", "crun-")) and (match := _NAMED_SCOPE.match(part)):
            return self._inner("container", runtime=match["runtime"], container_id=match["id"])
        return self._lxc(part) or self._nspawn(part)

    def _by_id(self, prefix: str | None, container_id: str, is_scope: bool) -> CgroupPlace | None:  # noqa: FBT001 - one caller
        """The place of a folder named ``[PREFIX-]ID[.scope]``; None where nobody has the prefix."""
        if prefix in ("crio-conmon", "libpod-conmon"):
            return self._inner(
                "unit" if is_scope else "cgroup", monitors=container_id,
                unit=self.here.rpartition("/")[2] if is_scope else None,
            )  # fmt: skip
        known = _RUNTIMES.get(prefix) if prefix else self._parent_runtime()
        if prefix and not known and not is_scope and self.place.kind != "pod":
            return None
        return self._inner("container", runtime=known, container_id=container_id)

    def _parent_runtime(self) -> str | None:
        """Who makes cgroups with a bare id here."""
        for parent in self.context[-1:] + self.context[:1]:
            if parent in _PARENT_RUNTIMES:
                return _PARENT_RUNTIMES[parent]
        return None

    def _lxc(self, part: str) -> CgroupPlace | None:
        name = part.removeprefix("lxc.payload.")
        if name != part and name:
            return self._at("container", runtime="lxc", machine=name)
        if self.context in (["lxc"], ["lxc.payload"]):
            return self._at("container", runtime="lxc", machine=part)
        return None

    def _nspawn(self, part: str) -> CgroupPlace | None:
        if self.context[-1:] != ["machine.slice"]:
            return None
        if match := _NSPAWN.match(part):
            return self._at("container", runtime="systemd-nspawn", machine=unescape(match["name"]))
        if match := _MACHINE.match(part):
            name = unescape(match["name"])
            if name.startswith("qemu-"):
                return self._at("unit", unit=part, is_machine=True)
            runtime = "lxc" if name.startswith("lxc-") else "systemd-nspawn"
            return self._at("container", runtime=runtime, machine=name)
        return None

    # --- batch jobs ---------------------------------------------------------------------

    def _job(self, part: str) -> CgroupPlace | None:
        homes = self.context[-2:]
        if not homes or part[0] not in "js" or not _JOB.match(part):
            return None
        if self.place.kind == "unit":
            is_job = self.place.unit == homes[-1] and bool(_STEPD.match(homes[-1]))
        else:
            is_users = self.place.kind == "cgroup" and _JOBS_USER.match(homes[-1])
            is_job = bool(is_users and _SLURM.match(homes[0]))
        if not is_job:
            return None
        self.is_delegated = True
        return self._at("cgroup", job=part)

    # --- the host's own system ----------------------------------------------------------

    def _system(self, part: str) -> CgroupPlace | None:
        """A unit, or a plain cgroup; None for what a service made below itself."""
        is_manager = self.place.unit is not None and self.place.unit == self.manager
        if self.place.job or (self.place.kind == "unit" and not is_manager):
            return None
        if part.endswith(_UNIT_ENDS) and _UNIT.match(part):
            unit = f"{self.manager}/{part}" if self.manager else part
            return self._at("slice" if part.endswith(".slice") else "unit", unit=unit)
        if is_manager:
            return None
        is_kubepods = part == "kubepods" or (self.context[-1:] == ["kubepods"] and part in _QOS)
        return self._at("slice" if is_kubepods else "cgroup")

    # --- making places ------------------------------------------------------------------

    def _at(self, kind: Kind, **told: object) -> CgroupPlace:
        return CgroupPlace(kind=kind, cgroup=self.here, is_delegated=self.is_delegated, **told)  # type: ignore[arg-type]

    def _inner(self, kind: Kind, **told: object) -> CgroupPlace:
        """The same, in the pod that encloses it."""
        pod = self.place if self.place.kind == "pod" else None
        uid, qos = (pod.pod_uid, pod.qos) if pod else (None, None)
        if pod and pod.runtime and not told.get("runtime") and kind == "container":
            told["runtime"] = pod.runtime
        return self._at(kind, pod_uid=uid, qos=qos, **told)


def is_within(path: str, place: str) -> bool:
    """``path`` is ``place`` or below it, on a component boundary: ``/a`` holds ``/a/b``, not
    ``/ab``.
    """
    return path == place or path.startswith(place.rstrip("/") + "/")


def user_of(path: str) -> int | None:
    """The uid whose slice ``path`` is: all sessions and the manager of that user are below it,
    ``/user.slice/user-1000.slice``.  None: it is no user's slice.
    """
    match = _USERS_SLICE.match(path)
    return int(match[1]) if match else None


def unescape(name: str) -> str:
    r"""Systemd's ``\x2d`` in unit names undone."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), name)


def expand(cgroups_path: str) -> str | None:
    """The cgroup of an OCI ``linux.cgroupsPath``: a path, or systemd's ``slice:prefix:name``.

    None for a path that is relative to wherever its runtime ran.
    """
    if cgroups_path.startswith("/"):
        return "/" + cgroups_path.strip("/")
    parts = cgroups_path.split(":")
    if len(parts) != 3 or "/" in cgroups_path:
        return None
    slice_, prefix, name = parts
    scope = name if name.endswith(".slice") else f"{prefix}-{name}.scope" if prefix else name
    return f"{_slice_path(slice_ or 'system.slice')}/{scope}"


def _slice_path(slice_: str) -> str:
    """``a-b.slice`` lies in ``a.slice``."""
    if slice_ == "-.slice":
        return ""
    words = slice_.removesuffix(".slice").split("-")
    return "".join(f"/{'-'.join(words[: i + 1])}.slice" for i in range(min(len(words), 64)))
