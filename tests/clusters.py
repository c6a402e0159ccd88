"""Real clusters on this machine, for tests: a Slurm of two nodes, a Ray cluster of two nodes.

Each is a context manager that gives the environment variables by which clients find it, and leaves
no process behind. `slurm_missing()` and `ray_missing()` say why one cannot run here."""

import ctypes
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

DAEMONS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo")
NODES = ("node1", "node2")
OBJECT_STORE = 80_000_000
"""Bytes; Ray takes no less than 75 MiB."""
CONFIG = """
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={controller}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=1,sched_interval=1
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
KillWait=2
SlurmdParameters=config_overrides
NodeName=node1 NodeHostname=localhost NodeAddr=127.0.0.1 Port={node1} CPUs=1 RealMemory=2000
NodeName=node2 NodeHostname=localhost NodeAddr=127.0.0.1 Port={node2} CPUs=1 RealMemory=2000
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def slurm_missing() -> str:
    """Why no Slurm can be started here; empty where it can."""
    path = os.environ.get("PATH", "") + ":/usr/sbin"
    absent = [name for name in DAEMONS if not shutil.which(name, path=path)]
    if absent:
        return f"Slurm is not installed ({', '.join(absent)})"
    if os.geteuid() != 0:
        return "Slurm's daemons need root"
    return "" if find_spec("submitit") else "submitit is not installed"


def ray_missing() -> str:
    """Why no Ray cluster can be started here; empty where it can."""
    return "" if find_spec("ray") else "ray is not installed"


@contextmanager
def slurm_cluster() -> Iterator[dict[str, str]]:
    """A Slurm with one controller and two nodes of one core each, on loopback."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="slurm-"))  # a short path: sockets allow no long ones
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        env = _slurm_files(folder)
        stack.callback(_end_processes_of, env["SLURM_CONF"])
        for command in _slurm_daemons(folder):
            stack.enter_context(_daemon(command, env, folder))
            if command[0] == "munged":
                _until((folder / "munge.socket").exists, "munged")
        _until(lambda: _node_states(env) == ["idle", "idle"], "Slurm's nodes")
        stack.callback(_empty_queue, env)
        yield env


def _slurm_files(folder: Path) -> dict[str, str]:
    """Its configuration and key; the variables by which clients find it."""
    (folder / "state").mkdir()
    for node in NODES:
        (folder / node).mkdir()
    key = folder / "munge.key"
    key.touch(0o600)
    key.write_bytes(secrets.token_bytes(128))
    ports = dict(zip(("controller", *NODES), _free_ports(3), strict=True))
    config = folder / "slurm.conf"
    config.write_text(CONFIG.format(folder=folder, **ports))
    return {"SLURM_CONF": str(config), "PATH": os.environ["PATH"] + ":/usr/sbin"}


def _slurm_daemons(folder: Path) -> list[list[str]]:
    files = {"key-file": "key", "socket": "socket", "pid-file": "pid"}
    files |= {"log-file": "log", "seed-file": "seed"}
    options = [f"--{option}={folder}/munge.{name}" for option, name in files.items()]
    nodes = [["slurmd", "-D", "-N", node] for node in NODES]
    return [["munged", "--foreground", "--force", *options], ["slurmctld", "-D"], *nodes]


@contextmanager
def _daemon(command: list[str], env: dict[str, str], folder: Path) -> Iterator[None]:
    """A process in the foreground, ended with the block, and with the test in any case."""
    given = {"stdout": subprocess.DEVNULL, "stderr": subprocess.STDOUT, "cwd": folder}
    process = subprocess.Popen(command, env=os.environ | env, preexec_fn=_die_with_parent, **given)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _die_with_parent() -> None:
    set_parent_death_signal = 1
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGTERM)


def _output(env: dict[str, str], *command: str) -> list[str]:
    given = {"capture_output": True, "text": True, "timeout": 30}
    return subprocess.run(command, env=os.environ | env, **given).stdout.split()


def _node_states(env: dict[str, str]) -> list[str]:
    return _output(env, "sinfo", "--noheader", "--Node", "--format=%T")


def _empty_queue(env: dict[str, str]) -> None:
    """No job is left, so no process of one is."""
    _output(env, "scancel", "--user=root")
    with suppress(TimeoutError):
        _until(
            lambda: not _output(env, "squeue", "--noheader", "--format=%i"), "the end of all jobs"
        )


def _end_processes_of(config: str) -> None:
    """Kill, one by one, what still runs with this configuration in its environment."""
    setting = f"SLURM_CONF={config}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int(entry.name) != os.getpid() and setting in (entry / "environ").read_bytes():
                os.kill(int(entry.name), signal.SIGKILL)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _until(condition: Callable[[], bool], what: str, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {seconds:.0f} s for {what}")
        time.sleep(0.05)


@contextmanager
def ray_cluster() -> Iterator[dict[str, str]]:
    """A Ray cluster of two nodes with one core each."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    folder = tempfile.mkdtemp(prefix="ray-")
    Path(tempfile.gettempdir(), "ray").mkdir(exist_ok=True)  # where Ray notes the last cluster
    node = {"num_cpus": 1, "object_store_memory": OBJECT_STORE, "include_dashboard": False}
    cluster = Cluster()
    try:
        cluster.add_node(**node, temp_dir=folder)
        cluster.add_node(**node)
        yield {"RAY_ADDRESS": cluster.address}
    finally:
        cluster.shutdown()
        shutil.rmtree(folder, ignore_errors=True)
