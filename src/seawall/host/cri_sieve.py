# SPDX-License-Identifier: Apache-2.0
"""What is kept of a runtime's own record of a container, and nothing else of it.

``info`` of ContainerStatus holds the whole config: environments, arguments, labels, mounts of
secrets.  Of it stay the process's id, which program runs it, CDI names, and of the OCI spec what
the sieve keeps of a config.json about devices, in its own shape.
"""

import json
from typing import Final

from seawall.host.device_sieve import device_facts, device_mount
from seawall.host.host import JSON
from seawall.host.sieve import variables
from seawall.problems import ParseProblem

_CDI: Final = "cdi.k8s.io/"
_WORD_MOST: Final = 4096
_ROWS_MOST: Final = 4096
_BINARY: Final = ("BinaryName", "binary_name", "binaryName")


def container_facts(info: bytes) -> dict[str, JSON]:
    """{"problem", "pid", "runtime_type", "binary", "cdi", "spec"}; ``spec`` is None where the
    runtime does not tell it (cri-dockerd).  ParseProblem: it is no JSON object.
    """
    document = _object(info)
    options = document.get("runtimeOptions")
    told = options if isinstance(options, dict) else {}
    spec = document.get("runtimeSpec")
    return {
        "problem": None,
        "pid": document.get("pid") if type(document.get("pid")) is int else None,
        "runtime_type": _word(document.get("runtimeType")),
        "binary": next((word for key in _BINARY if (word := _word(told.get(key)))), None),
        "cdi": _cdi_names(document.get("config")),
        "spec": _spec(spec) if isinstance(spec, dict) else None,
    }


def _object(info: bytes) -> dict[str, JSON]:
    if not info:
        return {}
    try:
        document = json.loads(info)
    except (ValueError, RecursionError) as error:
        raise ParseProblem(0, "JSON in the runtime's info") from error
    if not isinstance(document, dict):
        raise ParseProblem(0, "a JSON object in the runtime's info")
    return document


def _word(value: JSON) -> str | None:
    return value[:_WORD_MOST] if isinstance(value, str) and value else None


def _cdi_names(config: JSON) -> list[JSON]:
    """``CDI_devices`` of the CRI's ContainerConfig, since Kubernetes 1.28."""
    rows = config.get("CDI_devices") if isinstance(config, dict) else None
    if not isinstance(rows, list) or len(rows) > _ROWS_MOST:
        return []
    found = [row.get("name") for row in rows if isinstance(row, dict)]
    return [name[:_WORD_MOST] for name in found if isinstance(name, str) and name]


def _spec(spec: dict[str, JSON]) -> dict[str, JSON]:
    """In the shape of a config.json."""
    kept: dict[str, JSON] = {}
    if hooks := device_facts(spec).get("hooks"):  # type: ignore[arg-type]
        kept["hooks"] = hooks  # type: ignore[assignment]
    linux = spec.get("linux")
    if isinstance(linux, dict):
        kept["linux"] = _linux(linux)
    annotations = spec.get("annotations")
    if isinstance(annotations, dict):
        kept["annotations"] = {k: v for k, v in annotations.items() if k.startswith(_CDI)}
    mounts = spec.get("mounts")
    if isinstance(mounts, list):
        given = [device_mount(row) for row in mounts if isinstance(row, dict)]  # type: ignore[arg-type]
        kept["mounts"] = [row for row in given if row]  # type: ignore[misc]
    process = spec.get("process")
    if isinstance(process, dict) and (words := variables(process, "env")):  # type: ignore[arg-type]
        kept["process"] = words  # type: ignore[assignment]
    return kept


def _linux(linux: dict[str, JSON]) -> dict[str, JSON]:
    kept: dict[str, JSON] = {k: linux[k] for k in ("devices", "cgroupsPath") if k in linux}
    resources = linux.get("resources")
    if isinstance(resources, dict) and "devices" in resources:
        kept["resources"] = {"devices": resources["devices"]}
    return kept
