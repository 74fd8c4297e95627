# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Groups of ranks: how a job begins and ends, who is in it."""

from __future__ import annotations

import atexit
import contextlib
import datetime
import importlib
import math
import os
import threading
from collections.abc import Sequence

from .. import ranks as launched
from ..errors import ArgumentError, Error
from ..source import warn

DEFAULT_TIMEOUT = 120.0
WORLD = None  # as scripts of torch.distributed spell the group of all ranks, group.WORLD


class DistributedError(Error, RuntimeError):
    """A call of a group that failed: calls that differ between ranks, a rank that ended or did not come."""


class _NonGroupMember:
    """What `new_group` returns on ranks that are not of the group."""

    def __repr__(self):
        return "NON_GROUP_MEMBER"


NON_GROUP_MEMBER = _NonGroupMember()


class ProcessGroup:
    """Ranks that call collectives together. Made by `init_process_group` and `new_group`."""

    def __init__(self, handle, rank: int, backend: str, timeout: float, devices: dict[str, str] | None = None):
        self.devices, self._is_own = devices or {"cpu": backend}, False
        self.handle, self.ranks, self.global_rank = handle, handle.members(), rank
        self.backend, self.timeout = backend, timeout
        self._under_way: list = []

    def rank(self) -> int:
        """This process's place in the group."""
        return self.ranks.index(self.global_rank)

    def size(self) -> int:
        return len(self.ranks)

    def device_of(self, data) -> str | None:
        """Where the array of a call is, which the runtime compares with the backends; None for what the package itself sends."""
        return None if self._is_own else data.device

    def is_host(self, data) -> bool:
        """Whether a message is of the host's memory; an error where the backends do not work there."""
        if data.device not in self.devices:
            names = {"cpu": "tcp", "cuda": "nccl", **self.devices}
            raise DistributedError(f"the array is on '{data.device}', and backend '{self.backend}' works on "
                                   f"'{next(iter(self.devices))}'; begin the job with 'cpu:{names['cpu']},cuda:{names['cuda']}'")
        return data.device == "cpu"

    @contextlib.contextmanager
    def own_arrays(self):
        """Within it, arrays are those of the package, on the host whatever the backend."""
        self._is_own = True
        try:
            yield
        finally:
            self._is_own = False

    def __deepcopy__(self, memo):
        """A copy of what holds a group, as a module does, is of the same group."""
        return self

    def keep(self, work, arrays) -> None:
        """Keeps what a call reads and writes until it has ended, also where nobody waits for it."""
        self._under_way = [each for each in self._under_way if not each[0].is_completed()]
        self._under_way.append((work, arrays))

    def __repr__(self):
        return f"ProcessGroup(ranks={self.ranks}, backend='{self.backend}')"

    @staticmethod
    @contextlib.contextmanager
    def errors():
        module = _module()
        try:
            yield module
        except module.Error as error:
            raise DistributedError(str(error)) from None


def _module():
    try:
        return importlib.import_module("tessera._groups")
    except ModuleNotFoundError as error:
        if error.name != "tessera._groups":
            raise
        raise ImportError("tessera._groups was not built: run scripts/setup-python BUILD, configure and build again, and put "
                          "BUILD/python on PYTHONPATH") from None


class _State(threading.local):
    """The group of all ranks. Ranks of the backend `threads` are threads, so each has its own."""

    world: ProcessGroup | None = None
    made: list = []
    local_rank: int | None = None  # as the launcher says


_of_thread, _of_process = _State(), type("State", (), {"world": None, "made": [], "local_rank": None})()


def _state():
    return _of_thread if _of_thread.world else _of_process


def backends() -> list[str]:
    """The names of all backends."""
    return _module().backends().split()


def load_backend(path) -> None:
    """Loads a shared object with a backend, which `init_process_group` then knows by its name (tessera_transport_entry of
    tessera_groups.h)."""
    with ProcessGroup.errors() as module:
        module.load_backend(os.fsdecode(path))


def _choose(backend: str | None, source: str) -> dict[str, str]:
    """The backend of each device, 'cpu' and 'cuda'."""
    known = backends()
    if backend is None:
        host = "mpi" if source in ("OMPI_*", "PMI_*") and "mpi" in known else "tcp"
        return {"cpu": host, "cuda": "nccl"}
    if isinstance(backend, str) and backend.lower() == "nccl":
        return {"cuda": "nccl"}
    if isinstance(backend, str) and ":" in backend:
        chosen = dict(each.partition(":")[::2] for each in backend.lower().split(","))
        if len(chosen) != len(backend.split(",")) or not set(chosen) <= {"cpu", "cuda"}:
            raise ArgumentError(f"backend {backend!r}; it is a name, or one for each of 'cpu' and 'cuda', as in 'cpu:tcp,cuda:nccl'")
        if chosen.get("cuda", "nccl") != "nccl":
            raise ArgumentError(f"no backend '{chosen['cuda']}' of 'cuda'; there is nccl")
        _known(chosen.get("cpu", "tcp"), known)
        return chosen
    _known(backend, known)
    return {"cpu": backend.lower()}


def _known(backend, known: list[str]) -> None:
    if not isinstance(backend, str) or backend.lower() not in known:
        raise ArgumentError(f"no backend {backend!r}; there are {', '.join(known)}, and nccl of 'cuda'")


def _seconds(timeout) -> float:
    seconds = timeout.total_seconds() if isinstance(timeout, datetime.timedelta) else timeout
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds < math.inf:
        raise ArgumentError(f"timeout {timeout!r} is not a number of seconds above 0, and no timedelta")
    return float(seconds)


def _token(environ=os.environ) -> str | None:
    """The job's secret, as the launcher hands it on."""
    text, path = environ.get("TESSERA_JOB_TOKEN"), environ.get("TESSERA_JOB_TOKEN_FILE")
    if text is None and path is not None:
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise Error(f"TESSERA_JOB_TOKEN_FILE is '{path}': {error}") from None
    if text is not None and len(text.strip().encode()) < 16:
        raise Error("the job token has less than 16 bytes; make one with: openssl rand -hex 32")
    return None if text is None else text.strip()


def _place(method: str, backend: str) -> str:
    """The address of the runtime for an init_method."""
    if method == "env://":
        return " ".join(map(str, launched.meeting()))
    if backend == "threads":
        return method
    if method.startswith("file://") and len(method) > 7:
        return "file:" + os.path.abspath(method[7:])
    if method.startswith("tcp://"):
        host, colon, port = method[6:].rpartition(":")
        if colon:
            return f"{launched.address('init_method', host)} {launched.port('init_method', port)}"
    raise ArgumentError(f"init_method '{method}' is not env://, tcp://HOST:PORT or file://PATH")


def init_process_group(backend: str | None = None, init_method: str | None = None, timeout=DEFAULT_TIMEOUT, world_size: int = -1,
                       rank: int = -1) -> ProcessGroup:
    """Makes this process a rank of a job, and waits for all others.

    backend: a name of `backends()` for arrays on the CPU, 'nccl' for those of GPUs, or 'cpu:tcp,cuda:nccl' for both; by default both,
    with `mpi` for `tcp` under an MPI launcher where it is there. A GPU, that of the local rank, is opened by the first call that
    needs it, with 'nccl' alone at once. init_method:
    `env://` (the default: as the launcher says, docs/launch.md), `tcp://HOST:PORT`, where rank 0 listens, or `file://PATH`, a file
    that all see and none has yet; both need rank and world_size. Ranks of the backend `threads` are threads of this process; their
    init_method is any name that they share. timeout: seconds or a timedelta, of this meeting and of each call; a rank that does not
    come is named. Ranks on several hosts need a job token, TESSERA_JOB_TOKEN or TESSERA_JOB_TOKEN_FILE."""
    seconds, given = _seconds(timeout), init_method or "env://"
    explicit = rank >= 0 or world_size >= 0
    self = launched.Ranks() if explicit else launched.read()
    devices = _choose(backend, self.source)
    chosen = devices.get("cpu", devices.get("cuda"))
    if explicit and (rank < 0 or world_size < 1 or rank >= world_size):
        raise ArgumentError(f"rank {rank} of world_size {world_size}; give both, and count ranks from 0")
    if not explicit and (given != "env://" or chosen == "threads"):
        raise ArgumentError(f"init_method '{given}' of backend '{chosen}' needs rank and world_size")
    if explicit:
        self = launched.Ranks(rank, world_size)
    if _state().world:
        raise DistributedError("init_process_group was called already; destroy_process_group ends the job")
    with ProcessGroup.errors() as module:
        handle = module.Group.open(",".join(":".join(each) for each in devices.items()), _place(given, chosen), _token(), self.rank, self.size, self.local_rank or 0, seconds)
    state = _of_thread if chosen == "threads" else _of_process
    if state is _of_process:
        atexit.register(_end)
    state.world, state.made, state.local_rank = ProcessGroup(handle, self.rank, chosen, seconds, devices), [], self.local_rank
    return state.world


def is_initialized() -> bool:
    return _state().world is not None


def world() -> ProcessGroup:
    group = _state().world
    if group is None:
        raise DistributedError("there is no process group; call init_process_group first")
    return group


def member(group: ProcessGroup | None) -> ProcessGroup | None:
    """The group of a call; None, with a warning, where this rank is not of it."""
    whole = world()
    if group is None:
        return whole
    if group is NON_GROUP_MEMBER:
        warn(f"rank {whole.global_rank} is not of the group; the call does nothing")
        return None
    if not isinstance(group, ProcessGroup):
        raise ArgumentError(f"group {group!r} is no ProcessGroup")
    return group


def new_group(ranks: Sequence[int] | None = None, timeout=None):
    """A group of some ranks of the job. All ranks of the job call it, with the same ranks; NON_GROUP_MEMBER on those that are not
    of it. Places in the group are in ascending order of ranks."""
    whole = world()
    members = whole.ranks if ranks is None else [int(each) for each in ranks]
    seconds = whole.timeout if timeout is None else _seconds(timeout)
    with ProcessGroup.errors():
        handle = whole.handle.make(sorted(members), seconds)
    if handle is None:
        return NON_GROUP_MEMBER
    made = ProcessGroup(handle, whole.global_rank, whole.backend, seconds, whole.devices)
    _state().made.append(made)
    return made


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Ends a group, or by default the job: calls under way fail."""
    whole, state = world(), _state()
    if group is NON_GROUP_MEMBER:
        return
    if group is not None and group is not whole:
        group.handle.close()
        state.made = [each for each in state.made if each is not group]
        return
    for each in [*state.made, whole]:
        each.handle.close()
    state.world, state.made = None, []
    atexit.unregister(_end)


def _end() -> None:
    """At the end of the process: the thread of the runtime ends before the interpreter does."""
    atexit.unregister(_end)
    if _of_process.world:
        for each in [*_of_process.made, _of_process.world]:
            each.handle.close()
        _of_process.world, _of_process.made = None, []


def get_rank(group=None) -> int:
    """This process's place in the group, by default its rank in the job; -1 where it is not of it."""
    whole = world()
    return -1 if group is NON_GROUP_MEMBER else (group or whole).rank()


def get_world_size(group=None) -> int:
    whole = world()
    return -1 if group is NON_GROUP_MEMBER else (group or whole).size()


def get_process_group_ranks(group=None) -> list[int]:
    """The ranks of the job that are of a group, by place."""
    return list((group or world()).ranks)


def get_backend(group=None) -> str:
    """That of arrays on the CPU, or 'nccl' where there is none."""
    return (group or world()).backend


def get_host(rank: int) -> str:
    """The name of a rank's host."""
    if not 0 <= rank < world().size():
        raise ArgumentError(f"rank {rank} of {world().size()}; ranks are counted from 0")
    return world().handle.host(rank)


def get_local_rank() -> int:
    """This process's place among the ranks of its node: as its launcher says (two launchers on one host are two nodes), else among
    those of its host."""
    whole, told = world(), _state().local_rank
    if told is not None:
        return told
    return launched.local_ranks([whole.handle.host(rank) for rank in whole.ranks])[whole.global_rank][0]
