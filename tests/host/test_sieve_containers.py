"""What of container configs never enters the process."""

import json

from seawall.host.sieve import keep_container_config, keep_runtime_state, sieve_for


def test_annotations_of_users_are_dropped_whoever_holds_them() -> None:
    """CRI-O copies all annotations of a pod, kubectl's last-applied one included."""
    secret = json.dumps({"kubectl.kubernetes.io/last-applied-configuration": "TOKEN=hunter2"})
    kept = {
        "io.kubernetes.pod.name": "web-0", "io.kubernetes.cri-o.SandboxID": "abc",
        "io.kubernetes.cri-o.ContainerType": "sandbox", "io.container.manager": "cri-o",
    }  # fmt: skip
    config = {
        "annotations": {
            **kept, "io.kubernetes.cri-o.Annotations": secret, "io.kubernetes.cri-o.Labels": secret,
            "io.kubernetes.cri-o.Volumes": secret, "io.kubernetes.cri.other": secret,
            "org.systemd.property.Environment": secret,
        },
        "Config": {"Labels": {"io.kubernetes.docker.type": "podsandbox", "password": "hunter2"},
                   "Env": ["TOKEN=hunter2"]},
    }  # fmt: skip
    sieved = keep_container_config(json.dumps(config).encode())
    assert b"hunter2" not in sieved
    assert json.loads(sieved)["annotations"] == kept
    assert json.loads(sieved)["Config"] == {"Labels": {"io.kubernetes.docker.type": "podsandbox"}}


def test_runtime_state_keeps_the_cgroups_and_the_bundle() -> None:
    state = {
        "id": "w1", "init_process_pid": 7, "cgroup_paths": {"memory": "/m/w1", "pids": 3},
        "config": {"labels": ["bundle=/b", "token=hunter2"], "mounts": [{"source": "/secret"}]},
    }  # fmt: skip
    sieved = sieve_for("/run/runc/w1/state.json")
    assert sieved is keep_runtime_state
    assert json.loads(sieved(json.dumps(state).encode())) == {
        "id": "w1",
        "cgroup_paths": {"memory": "/m/w1"},
        "config": {"labels": ["bundle=/b"]},
    }
    for hostile in (b"", b"7", b"[" * 100_000, b'{"cgroup_paths": []}', b'{"id": {}}', b"9" * 5000):
        assert b"[" not in sieved(hostile)
