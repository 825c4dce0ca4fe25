# SPDX-License-Identifier: Apache-2.0
"""Where a kubeconfig says that the API server is, and who asks it: read by lightkube."""

import base64
import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from typing import Any, Final

from seawall.cluster.kube.kube_client import ClusterAccess, KubeProblem
from seawall.problems import UsageProblem

_PLUGIN_SECONDS: Final = 30.0


def kubeconfig_access(path: str, context: str | None = None) -> ClusterAccess:
    """UsageProblem: no such file or context, or nothing in it that says who asks."""
    from lightkube.config.kubeconfig import KubeConfig  # noqa: PLC0415 - an extra
    from lightkube.core.exceptions import ConfigError  # noqa: PLC0415 - an extra

    try:
        config: Any = KubeConfig.from_file(path).get(context_name=context)
    except OSError as problem:
        raise UsageProblem(f"{path}: {problem.strerror}") from None
    except Exception as problem:
        known = (ConfigError, ValueError, TypeError, KeyError, AttributeError)
        is_yaml = type(problem).__module__.startswith("yaml")
        if not is_yaml and not isinstance(problem, known):
            raise
        words = " ".join(str(problem).split())
        raise UsageProblem(f"{path}: no kubeconfig that can be used: {words[:200]}") from None
    cluster, user = config.cluster, config.user
    folder = os.path.dirname(os.path.abspath(path))
    ca_data = cluster.certificate_auth_data
    return ClusterAccess(
        cluster.server,
        ca_file=_beside(folder, cluster.certificate_auth),
        ca_data=base64.b64decode(ca_data).decode("ascii", "replace") if ca_data else "",
        token_source=_plugin(user.exec) if user is not None and user.exec else None,
        token_file=_beside(folder, user.token_file) if user is not None else "",
        token=(user.token or "") if user is not None else "",
        client_certificate_file=_file(folder, user, "client_cert"),
        client_key_file=_file(folder, user, "client_key"),
        is_unverified=bool(cluster.insecure),
    )


def _beside(folder: str, name: str | None) -> str:
    return os.path.join(folder, name) if name else ""


def _file(folder: str, user: Any, field: str) -> str:
    """Of data a file of its own, readable by its owner alone, for as long as the process lives."""
    if user is None:
        return ""
    data = getattr(user, f"{field}_data")
    if not data:
        return _beside(folder, getattr(user, field))
    file = tempfile.NamedTemporaryFile(prefix="seawall-")  # noqa: SIM115 - for life
    file.write(base64.b64decode(data))
    file.flush()
    _FILES.append(file)
    return file.name


_FILES: Final[list[Any]] = []


def _plugin(plugin: Any) -> Callable[[], str]:
    """A program that says the token (``client.authentication.k8s.io``)."""
    info = {"apiVersion": plugin.apiVersion, "kind": "ExecCredential",
            "spec": {"interactive": False}}  # fmt: skip
    environment = {
        **os.environ, "KUBERNETES_EXEC_INFO": json.dumps(info),
        **{one.name: one.value for one in plugin.env or ()},
    }  # fmt: skip

    def token() -> str:
        try:
            done = subprocess.run(  # noqa: S603 - what the kubeconfig's owner wrote there
                [plugin.command, *(plugin.args or ())], env=environment, check=True,
                stdin=subprocess.DEVNULL, capture_output=True, timeout=_PLUGIN_SECONDS,
            )  # fmt: skip
            return str(json.loads(done.stdout)["status"]["token"])
        except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError) as problem:
            raise KubeProblem(f"{plugin.command} says no token: {problem!r}") from None

    return token
