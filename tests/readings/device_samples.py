"""Files that say something about devices, as the kernel and the programs write them."""

import json

# Linux 6.1 with NVIDIA's modules of the 5xx branches loaded, shortened.
PROC_DEVICES = b"""Character devices:
  1 mem
  4 /dev/vc/0
  4 tty
 10 misc
136 pts
195 nvidia
195 nvidia-modeset
195 nvidiactl
226 drm
234 nvidia-uvm
236 nvidia-caps-imex-channels
237 nvidia-caps
511 hidraw

Block devices:
  7 loop
  8 sd
259 blkext
"""
# Of runc 1.1.5 on a kernel 6.18 with cgroup v1.
DEVICES_LIST = b"""b *:* m
c *:* m
c 1:3 rwm
c 5:2 rwm
c 10:200 rwm
c 136:* rwm
c 195:255 rw
c 226:* rw
"""
# What runc 1.1.5 wrote for it, shortened: 99 is c, 98 b, 97 a.
RUNC_STATE = json.dumps(
    {
        "id": "swb", "init_process_pid": 15461,
        "config": {
            "devices": [
                {"type": 99, "major": 1, "minor": 3, "permissions": "rwm", "allow": True,
                 "path": "/dev/null", "file_mode": 438, "uid": 0, "gid": 0},
                {"type": 99, "major": 195, "minor": 255, "permissions": "", "allow": False,
                 "path": "/dev/nvidiactl", "file_mode": 438, "uid": 0, "gid": 0},
            ],
            "cgroups": {
                "name": "swb",
                "devices": [
                    {"type": 97, "major": -1, "minor": -1, "permissions": "rwm", "allow": False},
                    {"type": 99, "major": 195, "minor": 255, "permissions": "rw", "allow": True},
                    {"type": 99, "major": 226, "minor": -1, "permissions": "rw", "allow": True},
                    {"type": 98, "major": -1, "minor": -1, "permissions": "m", "allow": True},
                ],
            },
            "labels": ["bundle=/b", "token=hunter2"],
        },
        "cgroup_paths": {"devices": "/sys/fs/cgroup/devices/swb"},
    }
).encode()  # fmt: skip
OCI_CONFIG = json.dumps(
    {
        "ociVersion": "1.0.2",
        "process": {"env": ["PATH=/bin", "TOKEN=hunter2", "NVIDIA_VISIBLE_DEVICES=GPU-7",
                            "NVIDIA_VISIBLE_DEVICES=all"]},
        "hooks": {"prestart": [{"path": "/usr/bin/nvidia-container-runtime-hook",
                                "args": ["x", "hunter2"]}],
                  "poststop": [{"path": "/bin/late"}]},
        "mounts": [
            {"destination": "/dev/pts", "type": "devpts", "source": "devpts"},
            {"destination": "/dev/kfd", "type": "bind", "source": "/dev/kfd",
             "options": ["rbind", "rw"]},
            {"destination": "/data", "type": "bind", "source": "/home/hunter2"},
        ],
        "annotations": {"cdi.k8s.io/devices": "nvidia.com/gpu=0,nvidia.com/gpu=1",
                        "secret": "hunter2"},
        "linux": {
            "cgroupsPath": "kubepods-burstable-pod1.slice:cri-containerd:abc",
            "devices": [
                {"path": "/dev/nvidiactl", "type": "c", "major": 195, "minor": 255,
                 "fileMode": 8630, "uid": 0, "gid": 0},
                {"path": "/dev/log", "type": "p"},
            ],
            "resources": {"devices": [
                {"allow": False, "access": "rwm"},
                {"allow": True, "type": "c", "major": 195, "minor": 255, "access": "wr"},
                {"allow": True, "type": "c", "major": 226, "access": "rw"},
                {"allow": True, "type": "b", "major": -1, "minor": -1, "access": "m"},
            ]},
        },
    }
).encode()  # fmt: skip
HOSTCONFIG = json.dumps(
    {
        "Binds": ["/home/hunter2:/data"],
        "Devices": [
            {"PathOnHost": "/dev/nvidiactl", "PathInContainer": "/dev/nvidiactl",
             "CgroupPermissions": "rw"},
            {"PathOnHost": "/dev/nvidia1", "PathInContainer": "/dev/nvidia0",
             "CgroupPermissions": "rwm"},
        ],
        "DeviceCgroupRules": ["c 226:* rw"],
        "DeviceRequests": [
            {"Driver": "", "Count": -1, "DeviceIDs": None, "Capabilities": [["gpu"]]},
            {"Driver": "cdi", "Count": 0, "DeviceIDs": ["nvidia.com/gpu=0"]},
        ],
        "Runtime": "nvidia",
        "Privileged": False,
    }
).encode()  # fmt: skip
CONFIG_V2 = json.dumps(
    {"Name": "/web", "Config": {"Env": ["TOKEN=hunter2", "NVIDIA_DRIVER_CAPABILITIES=all"]}}
).encode()
# A plugin that lists its one GPU as "tegra" and answers with a variable alone.
TEGRA = "Ch8KFk5WSURJQV9WSVNJQkxFX0RFVklDRVMSBXRlZ3Jh"
CHECKPOINT = json.dumps(
    {
        "Data": {
            "PodDeviceEntries": [
                {"PodUID": "bf52b2cd", "ContainerName": "check", "ResourceName": "nvidia.com/gpu",
                 "DeviceIDs": {"-1": ["tegra"]}, "AllocResp": TEGRA},
                {"PodUID": "0dbd65af", "ContainerName": "old", "ResourceName": "nvidia.com/gpu",
                 "DeviceIDs": ["GPU-1", "GPU-2"], "AllocResp": ""},
            ],
            "RegisteredDevices": {"nvidia.com/gpu": ["tegra", "GPU-1", "GPU-2"]},
        },
        "Checksum": 3660592824,
    }
).encode()  # fmt: skip
# systemd 252, a scope that runc made with its systemd driver.
SCOPE = b"""# This is a transient unit file, created programmatically via the systemd API.
[Unit]
Description=libcontainer container abc
DefaultDependencies=no

[Scope]
Slice=system.slice
Delegate=yes
MemoryAccounting=yes
DevicePolicy=strict
DeviceAllow=
DeviceAllow=/dev/char/10:200 rwm
DeviceAllow=/dev/char/195:255 rw
DeviceAllow=char-pts rwm
DeviceAllow=char-* m
DeviceAllow=block-* m
"""
# nvidia-ctk 1.17 and later, shortened.
CDI_NEW = b"""---
cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
    - name: "0"
      containerEdits:
        deviceNodes:
            - path: /dev/nvidia0
              major: 195
              fileMode: 438
              permissions: rwm
            - path: /dev/dri/renderD128
              major: 226
              minor: 128
              fileMode: 438
              permissions: rwm
              gid: 105
        hooks:
            - hookName: createContainer
              path: /usr/bin/nvidia-cdi-hook
              args:
                - nvidia-cdi-hook
                - create-symlinks
                - --link
                - ../card0::/dev/dri/by-path/pci-0000:00:04.0-card
              env:
                - NVIDIA_CTK_DEBUG=false
        additionalGids:
            - 39
    - name: all
      containerEdits:
        deviceNodes:
            - path: /dev/nvidia0
              major: 195
containerEdits:
    env:
        - NVIDIA_VISIBLE_DEVICES=void
    deviceNodes:
        - path: /dev/nvidia-uvm
          major: 234
          fileMode: 438
        - path: /dev/nvidia-uvm-tools
          major: 234
          minor: 1
        - path: /dev/nvidiactl
          major: 195
          minor: 255
    mounts:
        - hostPath: /usr/bin/nvidia-smi
          containerPath: /usr/bin/nvidia-smi
          options:
            - ro
            - nosuid
"""
# nvidia-ctk 1.12 to 1.14: keys in order, lists not indented, no numbers.
CDI_OLD = b"""cdiVersion: 0.3.0
containerEdits:
  deviceNodes:
  - path: /dev/nvidia-modeset
  - hostPath: /driver/dev/nvidiactl
    path: /dev/nvidiactl
  hooks:
  - args:
    - nvidia-ctk
    - hook
    hookName: createContainer
    path: /usr/bin/nvidia-ctk
devices:
- containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
  name: '0'
kind: nvidia.com/gpu
"""
CDI_JSON = b"""{"cdiVersion": "0.6.0", "kind": "amd.com/gpu", "containerEdits":
{"deviceNodes": [{"path": "/dev/kfd", "type": "c", "major": 511, "minor": 0}]}, "devices":
[{"name": "0", "containerEdits": {"deviceNodes": [{"path": "/dev/dri/renderD128"}]}}]}"""

DPKG = b"""Package: systemd
Status: install ok installed
Version: 252.39-1~deb12u2
Description: x
 Package: runc

Package: runc
Status: deinstall ok config-files
Version: 1.0.0~rc6

Package: crun
Status: install ok installed
Version: 1.8.1-1+deb12u1
"""
STAT = b"cpu  7 0 2 900 1 0 0 0 0 0\nintr 12 0 3\nctxt 99\nbtime 1795364383\nprocesses 5\n"
