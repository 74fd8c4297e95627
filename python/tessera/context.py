# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Process-wide defaults of compilation, with MindSpore's API.

    tessera.set_auto_parallel_context(search_mode="dynamic_programming", all_reduce_fusion_config=[20, 35])
    tessera.set_algo_parameters(fully_use_devices=False)

Arguments of `jit`, or of a function that loads data, take precedence.
"""

from __future__ import annotations

from collections.abc import Sequence

from .errors import ArgumentError, StrategyError
from .source import entry, refuse

MODES = ("sharding_propagation", "dynamic_programming", "recursive_programming", "exact")
_FUSED = {"allreduce": "all-reduce", "allgather": "all-gather", "reducescatter": "reduce-scatter", "moves": "moves"}
_FUSION_MODES = ("auto", "size", "index")
_MOST_MIB = 1 << 20

_PARALLEL_MODES = ("semi_auto_parallel", "auto_parallel")

_DEFAULTS = {"parallel_mode": None, "search_mode": None, "all_reduce_fusion_config": [], "comm_fusion": None, "dataset_strategy": "data_parallel"}
_context = dict(_DEFAULTS)
_algorithm = {"fully_use_devices": True}
_options: dict | None = None  # compiler options of both; None: not computed yet


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
            raise refuse(ArgumentError, f"{name} has {after} after {before}; indices must be strictly ascending")
    return list(value)


def _fusion(value) -> dict:
    if not isinstance(value, dict):
        raise refuse(ArgumentError, f"comm_fusion {value!r} is not a dictionary, as {{'allreduce': {{'mode': 'auto', 'config': None}}}}")
    for key, of in value.items():
        where = f"comm_fusion['{key}']"
        if key not in _FUSED:
            raise refuse(ArgumentError, f"comm_fusion has the unknown key {key!r}; expected one of {', '.join(_FUSED)}")
        if not isinstance(of, dict) or set(of) - {"mode", "config"} or "mode" not in of:
            raise refuse(ArgumentError, f"{where} is {of!r}; expected a dictionary of 'mode' and 'config'")
        mode, config = of["mode"], of.get("config")
        if mode not in _FUSION_MODES:
            raise refuse(ArgumentError, f"{where} has the unknown mode {mode!r}; expected one of {', '.join(_FUSION_MODES)}")
        if mode == "index" and key != "allreduce":
            raise refuse(ArgumentError, f"{where} has mode 'index', which only allreduce supports")
        if mode == "auto" and config is not None:
            raise refuse(ArgumentError, f"{where} has mode 'auto' and config {config!r}; auto fuses up to 64 MiB, its config is None")
        if mode == "size" and (not _whole(config) or not 0 < config <= _MOST_MIB):
            raise refuse(ArgumentError, f"{where} has config {config!r}; mode 'size' takes a whole number of MiB from 1 to {_MOST_MIB}")
        if mode == "index":
            _indices(f"config of {where}", config)
    return {key: dict(of) for key, of in value.items()}


def _search_mode(value) -> str:
    if value not in MODES:
        raise refuse(ArgumentError, f"unknown search_mode {value!r}; expected one of {', '.join(MODES)}")
    return value


def _dataset_strategy(value):
    if not isinstance(value, (list, tuple)) and value not in ("full_batch", "data_parallel"):
        raise refuse(StrategyError, f"invalid dataset_strategy {value!r}; expected \"full_batch\", \"data_parallel\" or tuples of cuts")
    return value


def _parallel_mode(value) -> str:
    if value not in _PARALLEL_MODES:
        hint = "; data parallelism of whole batches is DistributedDataParallel" if value == "data_parallel" else ""
        raise refuse(ArgumentError, f"unknown parallel_mode {value!r}; expected one of {', '.join(_PARALLEL_MODES)}{hint}")
    return value


_CHECKS = {"parallel_mode": _parallel_mode, "search_mode": _search_mode, "all_reduce_fusion_config": lambda value: _indices("all_reduce_fusion_config", value),
           "comm_fusion": _fusion, "dataset_strategy": _dataset_strategy}


@entry
def set_auto_parallel_context(**given) -> None:
    """Sets defaults of later compilations, by keyword.

    parallel_mode: "semi_auto_parallel": propagate the given strategies; "auto_parallel": search for strategies with
    search_mode, default "recursive_programming".

    search_mode: as `search` of `jit`; enables the search by itself.

    all_reduce_fusion_config: indices in the program's sequence of all-reduces at which a new bucket begins; [20, 35]
    fuses 0 to 19, 20 to 34 and the rest. [] is the default.

    comm_fusion: for allreduce, allgather, reducescatter and moves (all-to-alls, permutes, exchanges)
    {"mode": "auto" | "size" | "index", "config": None | MiB | indices}.

    dataset_strategy: that of `data.place_batch`.

    Raises ArgumentError or StrategyError, naming the key, and then changes nothing.
    """
    for name in given:
        if name not in _CHECKS:
            raise refuse(ArgumentError, f"set_auto_parallel_context has no '{name}'; expected one of {', '.join(_CHECKS)}")
    new = {**_context, **{name: _CHECKS[name](value) for name, value in given.items()}}
    if new["all_reduce_fusion_config"] and "allreduce" in (new["comm_fusion"] or {}):
        raise refuse(ArgumentError, "all_reduce_fusion_config and comm_fusion['allreduce'] both configure the fusion "
                                    "of all-reduces; give one of them")
    _set(_context, new)


@entry
def get_auto_parallel_context(name: str):
    """The value of a key of set_auto_parallel_context. Raises ArgumentError for unknown keys."""
    if name not in _context:
        raise refuse(ArgumentError, f"get_auto_parallel_context has no '{name}'; expected one of {', '.join(_context)}")
    return _context[name]


def reset_auto_parallel_context() -> None:
    """Resets all keys of set_auto_parallel_context to their defaults."""
    _set(_context, _DEFAULTS)


@entry
def set_algo_parameters(*, fully_use_devices: bool = True, **unknown) -> None:
    """Sets parameters of the strategy search.

    fully_use_devices: True: try only strategies of contractions that use all devices, if sizes allow; False: try all,
    which takes longer and may find a cheaper plan. Raises ArgumentError for values that are not bool and for unknown
    names.
    """
    for name in unknown:
        raise refuse(ArgumentError, f"set_algo_parameters has no '{name}'; expected {', '.join(_algorithm)}")
    if not isinstance(fully_use_devices, bool):
        raise refuse(ArgumentError, f"fully_use_devices {fully_use_devices!r} is not True or False")
    _set(_algorithm, {"fully_use_devices": fully_use_devices})


@entry
def get_algo_parameters(name: str):
    """The value of a parameter of set_algo_parameters. Raises ArgumentError for unknown names."""
    if name not in _algorithm:
        raise refuse(ArgumentError, f"get_algo_parameters has no '{name}'; expected {', '.join(_algorithm)}")
    return _algorithm[name]


def reset_algo_parameters() -> None:
    """Resets all parameters of set_algo_parameters to their defaults."""
    _set(_algorithm, {"fully_use_devices": True})


def _numbers(values: Sequence[int]) -> str:
    return ",".join(map(str, values))


def options() -> dict:
    """Compiler options that differ from the defaults; the same object until a setting changes."""
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
