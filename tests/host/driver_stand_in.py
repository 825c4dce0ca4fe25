"""Libraries that a C compiler makes of the published declarations, where there is no GPU.

They prove names, argument order, structure layout and what is done with return codes, and nothing
of a real driver.  The ones at the end really open the nodes that they are given, so that what they
return is what this machine's kernel allows to whoever loaded them.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_ASK = """
import json, sys
from seawall.host.live import LiveHost
host = LiveHost()
answer = host.ask(sys.argv[1])
host.close()
print(json.dumps(answer if isinstance(answer, dict) else [answer.why, answer.detail]))
"""
needs_compiler = pytest.mark.skipif(
    shutil.which("gcc") is None, reason="needs a C compiler: apt-get install gcc libc6-dev"
)
needs_gpu = pytest.mark.skipif(
    not os.path.exists("/dev/nvidiactl"), reason="needs an NVIDIA GPU and its driver"
)


def ask(probe: str, folder: Path, **environment: str) -> Any:
    """The probe's answer with the libraries of ``folder``; ``[why, words]`` where there is none."""
    done = subprocess.run(
        [sys.executable, "-c", _ASK, probe],
        env={**os.environ, "LD_LIBRARY_PATH": str(folder), **environment},
        capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    return json.loads(done.stdout)


def build(source: str, to: Path, *flags: str) -> Path:
    """A shared library of C."""
    path = to.with_suffix(".c")
    path.write_text(source)
    subprocess.run(["gcc", "-w", "-shared", "-fPIC", *flags, "-o", to, path], check=True)
    return to


INSIDE_CUDA = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <unistd.h>
#define WITNESS "/dev/shm/witness"

static void *nothing(void *p) { return p; }

static void copy(FILE *to, const char *path)
{
    char part[4096]; size_t n; FILE *from = fopen(path, "r");
    if (!from) { fprintf(to, "errno %d\n", errno); return; }
    while ((n = fread(part, 1, sizeof part, from))) fwrite(part, 1, n, to);
    fclose(from);
}

static void links(FILE *to, const char *folder, const char *word)
{
    char path[512], target[512]; struct dirent *one; DIR *dir = opendir(folder);
    if (!dir) { fprintf(to, "errno %d\n", errno); return; }
    while ((one = readdir(dir))) {
        ssize_t n;
        if (one->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, one->d_name);
        if ((n = readlink(path, target, sizeof target - 1)) < 0) continue;
        target[n] = 0;
        fprintf(to, "%s:%s\t%s\n", word, one->d_name, target);
    }
    closedir(dir);
}

static void tell(FILE *to, const char *what, long outcome)
{ fprintf(to, "%s:\t%d\n", what, outcome < 0 ? errno : 0); }

static void witness(void)
{
    pthread_t thread; char target[512]; ssize_t n; int i; FILE *to = fopen(WITNESS, "w");
    if (!to) return;
    copy(to, "/proc/self/status");
    links(to, "/proc/self/fd", "fd");
    links(to, "/proc/self/ns", "ns");
    fputs("uid_map:\t", to); copy(to, "/proc/self/uid_map");
    fputs("oom_score_adj:\t", to); copy(to, "/proc/self/oom_score_adj");
    n = readlink("/proc/self/exe", target, sizeof target);
    fprintf(to, "exe:\t%.*s\n", (int)n, target);
    tell(to, "write_exe", open("/proc/self/exe", O_WRONLY));
    fprintf(to, "dumpable:\t%d\n", prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
    tell(to, "fork", fork());
    tell(to, "exec", execl("/bin/busybox", "true", NULL));
    tell(to, "unshare", unshare(CLONE_NEWUSER));
    tell(to, "ptrace", ptrace(PTRACE_TRACEME, 0, 0, 0));
    tell(to, "undump", prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
    tell(to, "undeath", prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0));
    fprintf(to, "thread:\t%d\n", pthread_create(&thread, NULL, nothing, NULL));
    fprintf(to, "visible:\t%s\n", getenv("CUDA_VISIBLE_DEVICES"));
    fprintf(to, "secret:\t%s\n", getenv("SECRET_TOKEN"));
    fclose(to);
}

/* 0 where the kernel lets it be opened, whether or not a driver is behind the number. */
static int refused(const char *path)
{
    int fd = open(path, O_RDWR | O_NONBLOCK);
    if (fd >= 0) { close(fd); return 0; }
    return errno == ENXIO || errno == ENODEV ? 0 : errno;
}

int cuDriverGetVersion(int *to) { *to = 12040; return 0; }
int cuInit(unsigned int flags)
{
    witness();
    if (access("/dev/shm/hang", F_OK) == 0) for (;;) pause();
    if (access("/dev/shm/crash", F_OK) == 0) abort();
    if (refused("/dev/nvidiactl")) return 100;
    if (refused("/dev/nvidia-uvm") || refused("/dev/nvidia0")) return 999;
    return 0;
}
int cuDeviceGetCount(int *to) { *to = 1; return 0; }
int cuDeviceGet(int *to, int n) { *to = n; return 0; }
int cuDeviceGetName(char *to, int n, int d) { strcpy(to, "A stand-in"); return 0; }
int cuDeviceGetUuid_v2(char *to, int d) { memset(to, 7, 16); return 0; }
int cuDeviceTotalMem_v2(size_t *to, int d) { *to = 80UL << 30; return 0; }
int cuDeviceGetAttribute(int *to, int attribute, int d) { *to = attribute; return 0; }
"""
INSIDE_NVML = r"""
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
int nvmlInitWithFlags(unsigned int flags)
{
    int fd = open("/dev/nvidiactl", O_RDWR | O_NONBLOCK);
    if (fd >= 0) { close(fd); return 0; }
    return errno == ENXIO || errno == ENODEV ? 0 : errno == ENOENT ? 9 : 999;
}
int nvmlShutdown(void) { return 0; }
int nvmlSystemGetDriverVersion(char *to, unsigned int n) { strcpy(to, "550.54.14"); return 0; }
int nvmlSystemGetCudaDriverVersion_v2(int *to) { *to = 12040; return 0; }
int nvmlDeviceGetCount_v2(unsigned int *to) { *to = 0; return 0; }
"""
"""As far as it is needed to see which nodes may be opened, and who is asked."""
