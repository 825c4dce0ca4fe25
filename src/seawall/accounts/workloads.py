# SPDX-License-Identifier: Apache-2.0
"""Workloads: what people think in.  From cgroup paths to pods, containers and units.

The path tells what it is (cgroup_paths.py); the node's files tell what people call it.  A
name of the host's is given only to cgroups that the host itself made: inside a container or
below a user's manager anyone may call a cgroup by somebody else's id.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from seawall.cgroup_paths import CgroupPlace, Qos, expand, place_of
from seawall.cgroup_paths import Kind as Kind  # noqa: PLC0414 - this is its home for others
from seawall.readings.cgroup import Cgroups
from seawall.readings.container_files import ContainerFile, ContainerFiles
from seawall.readings.slurm_jobs import NO_JOBS, SlurmJob, SlurmJobs
from seawall.slurm_paths import JobPart, part_of

SHORT_ID_CHARACTERS = 12
SANDBOX_NAME = "POD"
"""As the kubelet itself calls it; no container of a pod can, for it is upper case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One container, systemd unit or plain cgroup.  ``None``: unknown or does not apply."""

    kind: Kind
    name: str
    """Its address, as printed and as accepted wherever a verb takes a WORKLOAD:
    ``namespace/pod/container``; ``container:SHORTID`` or ``docker:NAME`` where no pod is
    known; ``slurm:7@alice``, ``slurm:7.0/1@alice`` for a batch job, its step and task;
    ``unit:x.service``; else the cgroup path."""
    cgroup: str
    """Path below the mount point of the tree that counts memory."""
    runtime: str | None = None
    """containerd, cri-o, docker, podman, systemd-nspawn, ..."""
    container_id: str | None = None
    namespace: str | None = None
    pod: str | None = None
    pod_uid: str | None = None
    container: str | None = None
    qos: Qos | None = None
    unit: str | None = None
    is_sandbox: bool = False
    """The pod's pause container."""
    is_tenant: bool = False
    """A container, pod or batch job, not part of the host's own system."""
    slurm: SlurmJob | None = None
    """The batch job that it is or is a part of."""
    step: str | None = None
    """Of that job: ``0``, ``batch``, ``extern``, ``interactive``."""


@dataclass(frozen=True, slots=True)
class Workloads:
    """The topic.  Leaves are containers, units and cgroups with processes of their own;
    pods and slices are there too, as parents.
    """

    by_cgroup: Mapping[str, Workload]
    by_pid: Mapping[int, Workload]
    job_parts: Mapping[str, Workload] = field(default_factory=dict)
    """By cgroup: steps and tasks of batch jobs.  The job is the workload, and these are its
    parts, which have a name too."""

    def of_cgroup(self, path: str) -> Workload | None:
        """The nearest workload at or above ``path`` (containers nest cgroups of their own)."""
        while path not in self.by_cgroup and path != "/":
            path = path.rpartition("/")[0] or "/"
        return self.by_cgroup.get(path)


def account(cgroups: Cgroups, files: ContainerFiles, jobs: SlurmJobs = NO_JOBS) -> Workloads:
    """Every workload of the tree that counts memory, and which process is in which."""
    owners = dict(_owners(cgroups.mount_point, files))
    by_cgroup: dict[str, Workload] = {}
    parts: dict[str, Workload] = {}
    found = Workloads(by_cgroup, by_pid := {}, parts)
    for path in sorted(cgroups.paths, key=lambda path: path.count("/")):
        part = part_of(path)
        if part is not None:
            (by_cgroup if part.cgroup == path else parts)[path] = _job(path, part, jobs)
            continue
        above = found.of_cgroup(path)
        workload = _workload(path, above, owners, files)
        if workload is not None:
            by_cgroup[path] = workload
    for path, pids in cgroups.pids.items():
        owner = found.of_cgroup(path)
        if owner is not None:
            by_pid.update(dict.fromkeys(pids, owner))
    return found


def _owners(mount_point: str, files: ContainerFiles) -> Iterator[tuple[str, ContainerFile]]:
    """The cgroups that runtimes wrote down themselves: what no grammar can know."""
    folder = mount_point.rstrip("/")
    for file in files.by_id.values():
        if file.cgroup_folder and file.cgroup_folder.startswith(folder + "/"):
            yield file.cgroup_folder[len(folder) :], file
        if file.cgroups_path and (path := expand(file.cgroups_path)):
            yield path, file


def _workload(
    path: str, above: Workload | None, owners: Mapping[str, ContainerFile], files: ContainerFiles
) -> Workload | None:
    """The workload whose own cgroup ``path`` is; None when it is part of the one above."""
    place = place_of(path)
    inside = above is not None and above.kind == "container"
    if place.kind == "container":
        if place.cgroup != path:
            return None
        file = None
        if not place.is_delegated and not inside:
            file = owners.get(path) or files.by_id.get(place.container_id or "")
        return _container(path, place, file, files, is_foreign=place.is_delegated or inside)
    if path in owners and not inside and not place.is_delegated:
        return _container(path, place, owners[path], files, is_foreign=False)
    if place.cgroup != path or (inside and place.kind != "pod"):
        return None
    if place.kind == "pod":
        return _pod(path, place, files, is_foreign=place.is_delegated or inside)
    return _system(path, place, files)


def _container(
    path: str,
    place: CgroupPlace,
    file: ContainerFile | None,
    files: ContainerFiles,
    *,
    is_foreign: bool,
) -> Workload:
    """A container; ``is_foreign``: made by somebody inside another, so the host's files
    say nothing about it.
    """
    told = file or ContainerFile(container_id=place.container_id or place.machine or "")
    uid = place.pod_uid or told.pod_uid
    namespace, pod = _pod_name(uid, files, told, is_foreign=is_foreign)
    runtime = place.runtime or told.runtime
    container = told.container or place.machine or (None if pod else told.name)
    return Workload(
        kind="container",
        name=_container_name(told, namespace, pod, place.machine, runtime),
        cgroup=path,
        runtime=runtime,
        container_id=place.container_id or (told.container_id if file else None),
        namespace=namespace,
        pod=pod,
        pod_uid=uid,
        container=container,
        qos=place.qos,
        is_sandbox=told.is_sandbox,
        is_tenant=True,
    )


def _container_name(
    told: ContainerFile, namespace: str | None, pod: str | None, machine: str | None,
    runtime: str | None,
) -> str:  # fmt: skip
    short = told.container_id[:SHORT_ID_CHARACTERS]
    if namespace and pod:
        last = SANDBOX_NAME if told.is_sandbox else told.container or short
        return f"{namespace}/{pod}/{last}"
    if runtime and (machine or told.name):
        return f"{runtime}:{machine or told.name}"
    return f"container:{short}"


def _pod_name(
    uid: str | None, files: ContainerFiles, told: ContainerFile | None, *, is_foreign: bool
) -> tuple[str | None, str | None]:
    """(namespace, pod): of the uid in the path when it is known, else as the container's
    own file says.
    """
    if is_foreign:
        return None, None
    if uid is not None and uid in files.pods:
        return files.pods[uid]
    if told is not None and told.namespace and told.pod:
        return told.namespace, told.pod
    return None, None


def _pod(path: str, place: CgroupPlace, files: ContainerFiles, *, is_foreign: bool) -> Workload:
    namespace, pod = _pod_name(place.pod_uid, files, None, is_foreign=is_foreign)
    return Workload(
        kind="pod",
        name=f"{namespace}/{pod}" if namespace and pod else path,
        cgroup=path,
        runtime=place.runtime,
        namespace=namespace,
        pod=pod,
        pod_uid=place.pod_uid,
        qos=place.qos,
        is_tenant=True,
    )


def _job(path: str, part: JobPart, jobs: SlurmJobs) -> Workload:
    """A batch job, or a part of one: by the cgroup and not by what its environment says."""
    job = jobs.by_cgroup.get(part.cgroup)
    if job is None:
        job = SlurmJob(job=part.job, cgroup=part.cgroup, uid=part.uid)
    return Workload(
        kind="cgroup",
        name=f"slurm:{part.address}" + (f"@{job.owner}" if job.owner else ""),
        cgroup=path,
        is_tenant=True,
        slurm=job,
        step=part.step or None,
    )


def _system(path: str, place: CgroupPlace, files: ContainerFiles) -> Workload:
    """A unit, slice, plain cgroup or the root."""
    namespace, pod = _pod_name(place.pod_uid, files, None, is_foreign=place.is_delegated)
    return Workload(
        kind=place.kind,
        name=f"unit:{place.unit}" if place.unit else path,
        cgroup=path,
        namespace=namespace,
        pod=pod,
        pod_uid=place.pod_uid,
        unit=place.unit,
        is_tenant=place.is_machine,
    )
