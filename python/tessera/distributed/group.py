# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Process groups: start and end of a job, subgroups, ranks."""

from __future__ import annotations

import atexit
import contextlib
import datetime
import importlib
import math
import os
import threading
from collections.abc import Sequence

from .. import libraries, ranks as launched
from ..errors import ArgumentError, Error
from ..source import warn

DEFAULT_TIMEOUT = 120.0
WORLD = None  # the group of all ranks, as `group.WORLD` in torch.distributed


class DistributedError(Error, RuntimeError):
    """A call of a group failed: calls differ between ranks, or a rank has ended or is missing."""


class _NonGroupMember:
    """The result of `new_group` on ranks that are not in the group."""

    def __repr__(self):
        return "NON_GROUP_MEMBER"


NON_GROUP_MEMBER = _NonGroupMember()


class ProcessGroup:
    """Ranks that call collectives together; created by `init_process_group` and `new_group`."""

    def __init__(self, handle, rank: int, backend: str, timeout: float, devices: dict[str, str] | None = None):
        self.devices, self._uses_own_arrays = devices or {"cpu": backend}, False
        self.handle, self.ranks, self.global_rank = handle, handle.members(), rank
        self.backend, self.timeout = backend, timeout
        self._pending: list = []

    def rank(self) -> int:
        """This process's rank within the group."""
        return self.ranks.index(self.global_rank)

    def size(self) -> int:
        """The number of ranks of the group."""
        return len(self.ranks)

    def device_of(self, data) -> str | None:
        """The device of a call's array, which the backend must support; None for arrays of the package itself."""
        return None if self._uses_own_arrays else data.device

    def is_host(self, data) -> bool:
        """Whether an array is on the host. Raises DistributedError if no backend supports its device."""
        if data.device not in self.devices:
            names = {"cpu": "tcp", "cuda": "nccl", **self.devices}
            raise DistributedError(f"the array is on '{data.device}', and backend '{self.backend}' works on "
                                   f"'{next(iter(self.devices))}'; begin the job with 'cpu:{names['cpu']},cuda:{names['cuda']}'")
        return data.device == "cpu"

    @contextlib.contextmanager
    def own_arrays(self):
        """Within this context, calls are on host arrays of the package itself, whatever the backend."""
        self._uses_own_arrays = True
        try:
            yield
        finally:
            self._uses_own_arrays = False

    def __deepcopy__(self, memo):
        """The group itself, so that copies of its holder (such as a module) share it."""
        return self

    def keep(self, work, arrays) -> None:
        """Keep the arrays of a call alive until it has ended, even without a wait."""
        self._pending = [each for each in self._pending if not each[0].is_completed()]
        self._pending.append((work, arrays))

    def __repr__(self):
        return f"ProcessGroup(ranks={self.ranks}, backend='{self.backend}')"

    @staticmethod
    @contextlib.contextmanager
    def errors():
        """A context that raises errors of the runtime as DistributedError."""
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
    """The group of all ranks, and its subgroups. With backend `threads`, ranks are threads with a state each."""

    world: ProcessGroup | None = None
    groups: list = []
    local_rank: int | None = None  # from the launcher


_of_thread, _of_process = _State(), type("State", (), {"world": None, "groups": [], "local_rank": None})()


def _state():
    return _of_thread if _of_thread.world else _of_process


def backends() -> list[str]:
    """The names of all backends."""
    return _module().backends().split()


def load_backend(path) -> None:
    """Load a backend from a shared object (tessera_transport_entry of tessera_groups.h). Raises DistributedError.

    `init_process_group` then accepts its name.
    """
    with ProcessGroup.errors() as module:
        module.load_backend(os.fsdecode(path))


def _choose(backend: str | None, source: str) -> dict[str, str]:
    """The backend by device, 'cpu' or 'cuda'. source: launcher that gave the rank. Raises ArgumentError."""
    known = backends()
    if backend is None:
        host = "mpi" if source in ("OMPI_*", "PMI_*") and "mpi" in known else "tcp"
        return {"cpu": host, "cuda": "nccl"}
    if isinstance(backend, str) and backend.lower() == "nccl":
        return {"cuda": "nccl"}
    if isinstance(backend, str) and ":" in backend:
        chosen = dict(each.partition(":")[::2] for each in backend.lower().split(","))
        if len(chosen) != len(backend.split(",")) or not set(chosen) <= {"cpu", "cuda"}:
            raise ArgumentError(f"backend {backend!r}; expected a name, or one for each of 'cpu' and 'cuda', as in 'cpu:tcp,cuda:nccl'")
        if chosen.get("cuda", "nccl") != "nccl":
            raise ArgumentError(f"no backend '{chosen['cuda']}' for 'cuda'; there is nccl")
        _check_backend(chosen.get("cpu", "tcp"), known)
        return chosen
    _check_backend(backend, known)
    return {"cpu": backend.lower()}


def _check_backend(backend, known: list[str]) -> None:
    if not isinstance(backend, str) or backend.lower() not in known:
        raise ArgumentError(f"no backend {backend!r}; there are {', '.join(known)}, and nccl for 'cuda'")


def _seconds(timeout) -> float:
    seconds = timeout.total_seconds() if isinstance(timeout, datetime.timedelta) else timeout
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds < math.inf:
        raise ArgumentError(f"timeout {timeout!r} is neither a number of seconds above 0 nor a timedelta")
    return float(seconds)


def _token(environ=os.environ) -> str | None:
    """The job token from the environment. Returns None if there is none. Raises Error if it is invalid."""
    text, path = environ.get("TESSERA_JOB_TOKEN"), environ.get("TESSERA_JOB_TOKEN_FILE")
    if text is None and path is not None:
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise Error(f"TESSERA_JOB_TOKEN_FILE is '{path}': {error}") from None
    if text is not None and len(text.strip().encode()) < 16:
        raise Error("the job token has less than 16 bytes; create one with openssl rand -hex 32")
    return None if text is None else text.strip()


def _rendezvous(method: str, backend: str) -> str:
    """The runtime's rendezvous address for an init_method. Raises ArgumentError."""
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
    """Join a job as one of its ranks, and wait for all others.

    backend: a name of `backends()` for CPU arrays, 'nccl' for GPU arrays, or 'cpu:tcp,cuda:nccl' for both. The default
    is both, with 'mpi' instead of 'tcp' under an MPI launcher if it is available. The GPU of the local rank is opened
    by the first call that needs it, or here if backend is 'nccl'.
    init_method: 'env://' (default: the launcher's variables, docs/launch.md); 'tcp://HOST:PORT', where rank 0 listens;
    or 'file://PATH', a new file on a shared file system. The latter two need rank and world_size. Ranks of backend
    'threads' are threads of this process; their init_method is any common name.
    timeout: seconds or a timedelta, of the rendezvous and of each call.

    Ranks on several hosts need a job token, TESSERA_JOB_TOKEN or TESSERA_JOB_TOKEN_FILE. Raises ArgumentError, and
    DistributedError if the rendezvous fails, naming the missing ranks.
    """
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
        raise DistributedError("init_process_group was already called; call destroy_process_group first")
    if "cuda" in devices:
        libraries.offer()
    with ProcessGroup.errors() as module:
        handle = module.Group.open(",".join(":".join(each) for each in devices.items()), _rendezvous(given, chosen), _token(), self.rank, self.size, self.local_rank or 0, seconds)
    state = _of_thread if chosen == "threads" else _of_process
    if state is _of_process:
        atexit.register(_close_all)
    state.world, state.groups, state.local_rank = ProcessGroup(handle, self.rank, chosen, seconds, devices), [], self.local_rank
    return state.world


def is_initialized() -> bool:
    """Whether there is a process group."""
    return _state().world is not None


def world() -> ProcessGroup:
    """The group of all ranks. Raises DistributedError before init_process_group."""
    group = _state().world
    if group is None:
        raise DistributedError("there is no process group; call init_process_group first")
    return group


def member(group: ProcessGroup | None) -> ProcessGroup | None:
    """The group of a call. Returns None, with a warning, if this rank is not in it."""
    whole = world()
    if group is None:
        return whole
    if group is NON_GROUP_MEMBER:
        warn(f"rank {whole.global_rank} is not in the group; the call does nothing")
        return None
    if not isinstance(group, ProcessGroup):
        raise ArgumentError(f"group {group!r} is not a ProcessGroup")
    return group


def new_group(ranks: Sequence[int] | None = None, timeout=None):
    """Create a group of some ranks (default: all). All ranks of the job call it with the same ranks.

    Ranks within the group follow the order of ranks in the job. timeout: as in init_process_group. Returns
    NON_GROUP_MEMBER on ranks that are not in the group.
    """
    whole = world()
    members = whole.ranks if ranks is None else [int(each) for each in ranks]
    seconds = whole.timeout if timeout is None else _seconds(timeout)
    with ProcessGroup.errors():
        handle = whole.handle.make(sorted(members), seconds)
    if handle is None:
        return NON_GROUP_MEMBER
    made = ProcessGroup(handle, whole.global_rank, whole.backend, seconds, whole.devices)
    _state().groups.append(made)
    return made


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """End a group, or by default the job. Pending calls fail."""
    whole, state = world(), _state()
    if group is NON_GROUP_MEMBER:
        return
    if group is not None and group is not whole:
        group.handle.close()
        state.groups = [each for each in state.groups if each is not group]
        return
    for each in [*state.groups, whole]:
        each.handle.close()
    state.world, state.groups = None, []
    atexit.unregister(_close_all)


def _close_all() -> None:
    """At process exit: close all groups, so that the runtime's threads end before the interpreter."""
    atexit.unregister(_close_all)
    if _of_process.world:
        for each in [*_of_process.groups, _of_process.world]:
            each.handle.close()
        _of_process.world, _of_process.groups = None, []


def get_rank(group=None) -> int:
    """This process's rank within the group (default: the job); -1 if it is not in the group."""
    whole = world()
    return -1 if group is NON_GROUP_MEMBER else (group or whole).rank()


def get_world_size(group=None) -> int:
    """The number of ranks of the group (default: the job); -1 if this process is not in the group."""
    whole = world()
    return -1 if group is NON_GROUP_MEMBER else (group or whole).size()


def get_process_group_ranks(group=None) -> list[int]:
    """The ranks in the job of a group's members, in the order of their ranks within the group."""
    return list((group or world()).ranks)


def get_backend(group=None) -> str:
    """The group's backend for CPU arrays, or 'nccl' if it has none."""
    return (group or world()).backend


def get_host(rank: int) -> str:
    """The name of a rank's host."""
    if not 0 <= rank < world().size():
        raise ArgumentError(f"rank {rank} of {world().size()}; ranks are counted from 0")
    return world().handle.host(rank)


def get_local_rank() -> int:
    """This process's rank within its node: from its launcher (each launcher is a node), else within its host."""
    whole, local_rank = world(), _state().local_rank
    if local_rank is not None:
        return local_rank
    return launched.local_ranks([whole.handle.host(rank) for rank in whole.ranks])[whole.global_rank][0]
