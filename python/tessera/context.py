# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What all programs are compiled with from now on, in MindSpore's spelling.

    tessera.set_auto_parallel_context(search_mode="dynamic_programming", all_reduce_fusion_config=[20, 35])
    tessera.set_algo_parameters(fully_use_devices=False)

An argument of `jit`, or of a function that loads data, counts before the context.
"""

from __future__ import annotations

from collections.abc import Sequence

from .errors import ArgumentError, StrategyError
from .source import entry, refuse

MODES = ("sharding_propagation", "dynamic_programming", "recursive_programming", "exact")
_FUSED = {"allreduce": "all-reduce", "allgather": "all-gather", "reducescatter": "reduce-scatter"}
_FUSION_MODES = ("auto", "size", "index")
_MOST_MIB = 1 << 20

_PARALLEL_MODES = ("semi_auto_parallel", "auto_parallel")

_DEFAULTS = {"parallel_mode": None, "search_mode": None, "all_reduce_fusion_config": [], "comm_fusion": None, "dataset_strategy": "data_parallel"}
_context = dict(_DEFAULTS)
_algorithm = {"fully_use_devices": True}
_options: dict | None = None  # of both, once they are asked for


def _whole(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _indices(name: str, value) -> list[int]:
    if not isinstance(value, (list, tuple)):
        raise refuse(ArgumentError, f"{name} {value!r} is not a list of indices; give ascending numbers, as [20, 35], or [] for the default")
    for each in value:
        if not _whole(each) or each < 0:
            raise refuse(ArgumentError, f"{name} has {each!r}; indices are whole numbers, at least 0")
    for before, after in zip(value, value[1:]):
        if after <= before:
            raise refuse(ArgumentError, f"{name} has {after} behind {before}; indices ascend, each once")
    return list(value)


def _fusion(value) -> dict:
    if not isinstance(value, dict):
        raise refuse(ArgumentError, f"comm_fusion {value!r} is not a dictionary, as {{'allreduce': {{'mode': 'auto', 'config': None}}}}")
    for key, of in value.items():
        where = f"comm_fusion['{key}']"
        if key not in _FUSED:
            raise refuse(ArgumentError, f"comm_fusion has the key {key!r}; there are {', '.join(_FUSED)}")
        if not isinstance(of, dict) or set(of) - {"mode", "config"} or "mode" not in of:
            raise refuse(ArgumentError, f"{where} is {of!r}; it is a dictionary of 'mode' and 'config'")
        mode, config = of["mode"], of.get("config")
        if mode not in _FUSION_MODES:
            raise refuse(ArgumentError, f"{where} has mode {mode!r}; there are {', '.join(_FUSION_MODES)}")
        if mode == "index" and key != "allreduce":
            raise refuse(ArgumentError, f"{where} has mode 'index', which allreduce alone has")
        if mode == "auto" and config is not None:
            raise refuse(ArgumentError, f"{where} has mode 'auto' and config {config!r}; auto joins up to 64 MiB, its config is None")
        if mode == "size" and (not _whole(config) or not 0 < config <= _MOST_MIB):
            raise refuse(ArgumentError, f"{where} has config {config!r}; of mode 'size' it is a whole number of MiB from 1 to {_MOST_MIB}")
        if mode == "index":
            _indices(f"config of {where}", config)
    return {key: dict(of) for key, of in value.items()}


def _search_mode(value) -> str:
    if value not in MODES:
        raise refuse(ArgumentError, f"search_mode {value!r}; there are {', '.join(MODES)}")
    return value


def _dataset_strategy(value):
    if not isinstance(value, (list, tuple)) and value not in ("full_batch", "data_parallel"):
        raise refuse(StrategyError, f"dataset_strategy {value!r}; there are \"full_batch\", \"data_parallel\" and tuples of cuts")
    return value


def _parallel_mode(value) -> str:
    if value not in _PARALLEL_MODES:
        hint = "; data parallelism of whole batches is DistributedDataParallel" if value == "data_parallel" else ""
        raise refuse(ArgumentError, f"parallel_mode {value!r}; there are {', '.join(_PARALLEL_MODES)}{hint}")
    return value


_CHECKS = {"parallel_mode": _parallel_mode, "search_mode": _search_mode, "all_reduce_fusion_config": lambda value: _indices("all_reduce_fusion_config", value),
           "comm_fusion": _fusion, "dataset_strategy": _dataset_strategy}


@entry
def set_auto_parallel_context(**given) -> None:
    """parallel_mode: "semi_auto_parallel": strategies are those given and what they propagate to; "auto_parallel": they are searched, by
    search_mode or else "recursive_programming". search_mode: as `search` of `jit`; by itself it searches, too. all_reduce_fusion_config: the all-reduces of a program in their order are joined up to these
    indices, [20, 35] makes 0 to 19, 20 to 34 and the rest; [] is the default. comm_fusion: for allreduce, allgather and reducescatter
    {"mode": "auto" | "size" | "index", "config": None | MiB | indices}. dataset_strategy: of `data.place_batch`.

    Raises ArgumentError and StrategyError, which name the key, before anything changes.
    """
    for name in given:
        if name not in _CHECKS:
            raise refuse(ArgumentError, f"set_auto_parallel_context has no '{name}'; there are {', '.join(_CHECKS)}")
    new = {**_context, **{name: _CHECKS[name](value) for name, value in given.items()}}
    if new["all_reduce_fusion_config"] and "allreduce" in (new["comm_fusion"] or {}):
        raise refuse(ArgumentError, "all_reduce_fusion_config and comm_fusion['allreduce'] both say how all-reduces are joined; give one of them")
    _set(_context, new)


@entry
def get_auto_parallel_context(name: str):
    if name not in _context:
        raise refuse(ArgumentError, f"get_auto_parallel_context has no '{name}'; there are {', '.join(_context)}")
    return _context[name]


def reset_auto_parallel_context() -> None:
    _set(_context, _DEFAULTS)


@entry
def set_algo_parameters(*, fully_use_devices: bool = True, **unknown) -> None:
    """fully_use_devices: True: a search tries for contractions only what uses all devices, where sizes allow; False: everything, which
    takes longer and may find a cheaper plan. Raises ArgumentError for what is not a bool, and for other names."""
    for name in unknown:
        raise refuse(ArgumentError, f"set_algo_parameters has no '{name}'; there are {', '.join(_algorithm)}")
    if not isinstance(fully_use_devices, bool):
        raise refuse(ArgumentError, f"fully_use_devices {fully_use_devices!r} is not True or False")
    _set(_algorithm, {"fully_use_devices": fully_use_devices})


@entry
def get_algo_parameters(name: str):
    if name not in _algorithm:
        raise refuse(ArgumentError, f"get_algo_parameters has no '{name}'; there are {', '.join(_algorithm)}")
    return _algorithm[name]


def reset_algo_parameters() -> None:
    _set(_algorithm, {"fully_use_devices": True})


def _numbers(values: Sequence[int]) -> str:
    return ",".join(map(str, values))


def options() -> dict:
    """What is not the default, as options of compiling; the same object until something is set."""
    global _options
    if _options is None:
        _options = _as_options()
    return _options


def _set(values: dict, new: dict) -> None:
    global _options
    values.update(new)
    _options = None


def _as_options() -> dict:
    found: dict = {}
    words = []
    if _context["all_reduce_fusion_config"]:
        words.append(f"all-reduce=index all-reduce-config={_numbers(_context['all_reduce_fusion_config'])}")
    for key, of in (_context["comm_fusion"] or {}).items():
        kind, mode = _FUSED[key], of["mode"]
        if mode == "size":
            words.append(f"{kind}=size {kind}-config={of['config']}")
        elif mode == "index" and of["config"]:
            words.append(f"{kind}=index {kind}-config={_numbers(of['config'])}")
    if words:
        found["fusion"] = " ".join(words)
    if _context["parallel_mode"] == "auto_parallel":
        found["search"] = _context["search_mode"] or "recursive_programming"
    elif _context["parallel_mode"] is None and _context["search_mode"] is not None:
        found["search"] = _context["search_mode"]
    if not _algorithm["fully_use_devices"]:
        found["fully_use_devices"] = False
    return found
