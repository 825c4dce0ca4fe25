"""A Slurm with slurmdbd and a database: for what accounting knows, and who is Operator."""

import shutil
import subprocess
import time

from tests.slurm.slurm_room import SlurmRoom, free_ports, missing

PROGRAMS = {
    "slurmdbd": "slurmdbd", "mariadbd": "mariadb-server", "mariadb-install-db": "mariadb-server",
}  # fmt: skip
OPERATOR = "backup"
"""With AdminLevel Operator, and no other right."""
SETTINGS = """
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}
AccountingStoragePass={folder}/munge/socket
SlurmdTimeout=12
MessageTimeout=5
"""
DAEMON = """AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database}
StorageUser=slurm
StorageLoc=accounting
PidFile={folder}/slurmdbd.pid
"""


def missing_accounting() -> str:
    """Why there can be no accounting here; empty if it can."""
    for program, package in PROGRAMS.items():
        if shutil.which(program) is None:
            return f"no {program}: apt-get install {package}"
    return missing()


class AccountedSlurmRoom(SlurmRoom):
    """Two nodes, the account physics, the user games in it, and an Operator."""

    def __init__(self) -> None:
        super().__init__(nodes=2, constrains=False, cred_seconds=5)
        self.database, self.port = free_ports(2)

    def write_settings(self) -> None:
        self.settings = SETTINGS.format(port=self.port, folder=self.folder)
        super().write_settings()
        conf = self.folder / "slurmdbd.conf"
        conf.touch(mode=0o600)
        conf.write_text(DAEMON.format(port=self.port, folder=self.folder, database=self.database))

    def start(self, program: str, *arguments: str, part: str = "") -> None:
        if program == "slurmctld":
            self._start_accounting()
        super().start(program, *arguments, part=part)

    def start_parts(self) -> None:
        super().start_parts()
        self.command("sacctmgr", "-i", "add", "account", "physics")
        self.command("sacctmgr", "-i", "add", "user", "games", "account=physics")
        self.command(
            "sacctmgr", "-i", "add", "user", OPERATOR, "account=physics", "adminlevel=operator"
        )

    def as_operator(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """In the name of the Operator."""
        return subprocess.run(
            ["setpriv", f"--reuid={OPERATOR}", f"--regid={OPERATOR}", "--clear-groups", *words],
            env=self.environment, capture_output=True, text=True, check=False, timeout=100,
        )  # fmt: skip

    def _start_accounting(self) -> None:
        folder = self.folder / "database"
        subprocess.run(
            ["mariadb-install-db", "--no-defaults", f"--datadir={folder}", "--user=root",
             "--auth-root-authentication-method=normal", "--skip-test-db"],
            check=True, capture_output=True,
        )  # fmt: skip
        super().start(
            "mariadbd", "--no-defaults", f"--datadir={folder}", "--user=root",
            f"--socket={self.folder}/database.socket", f"--port={self.database}",
            "--bind-address=127.0.0.1", "--skip-grant-tables", "--innodb-buffer-pool-size=32M",
            "--innodb-flush-log-at-trx-commit=0",
        )  # fmt: skip
        self.wait((self.folder / "database.socket").exists, "the database")
        super().start("slurmdbd", "-D")
        self.wait(self._has_cluster, "slurmdbd")

    def _has_cluster(self) -> bool:
        done = subprocess.run(
            ["sacctmgr", "-i", "add", "cluster", self.name], env=self.environment,
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        if done.returncode and "already" not in done.stdout + done.stderr:
            time.sleep(1.0)
            return False
        return True
