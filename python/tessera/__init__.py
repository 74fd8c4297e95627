# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tessera: an auto-parallel tensor compiler. Programs written for one device run on many."""

import importlib
import importlib.util

from .errors import (ArgumentError, DTypeError, Error, InternalError, MeshError, OutOfRangeError, PlacementError, ShapeError, StrategyError,
                     TesseraWarning, TraceError)
from .sharding import Mesh, Open, Partial, Replicate, Shard, Sharding

# Modules that need NumPy, JAX or PyTorch are imported on first use: module -> names that it provides.
_LAZY = {
    "program": ("Program",),
    "runtime": ("Session",),
    "executable": ("Executable", "load"),
    "jax": ("from_jax",),
    "torch": ("from_torch",),
    "mesh": ("ProcessMesh",),
    "tensor": ("Tensor", "asarray", "from_dlpack", "spec"),
    "dtypes": ("DType", "bfloat16", "bool_", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint16", "uint32",
               "uint64", "uint8"),
    "compiled": ("explain", "jit"),
    "autodiff": ("grad", "value_and_grad"),
    "parallel": ("DataParallel", "DistributedDataParallel", "accumulate"),
    "stages": ("pipeline",),
    "stage_search": ("plan_pipeline",),
    "picture": ("visualize_sharding",),
    "strategy": ("shard",),
    "context": ("get_algo_parameters", "get_auto_parallel_context", "reset_algo_parameters", "reset_auto_parallel_context", "set_algo_parameters",
                "set_auto_parallel_context"),
    "control": ("checkpoint", "custom_gradient", "fori_loop", "scan"),
    "ops.distributed": ("reshard", "shard_tensor", "stop_gradient", "unshard"),
    "memory": ("max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_estimate", "memory_reserved", "reset_peak_memory_stats"),
    "optim": ("shard_optimizer",),
    "checkpoints": ("CheckpointError", "load_checkpoint", "load_distributed_checkpoint", "load_state", "save_checkpoint", "save_state"),
    "data": ("BatchSampler", "DataLoader", "DistributedSampler", "shard_dataloader"),
}
_MODULES = ("nn", "ops", "optim", "data", "distributed", "checkpoints", "kvstore", "testing", "parallel", "random", "tree")
_PLACES = {name: module for module, names in _LAZY.items() for name in names}

__all__ = ["ArgumentError", "DTypeError", "Error", "InternalError", "Mesh", "MeshError", "Open", "OutOfRangeError", "Partial",
           "PlacementError", "Replicate", "Shard", "ShapeError", "Sharding", "StrategyError", "TesseraWarning", "TraceError",
           # `import *` skips the importers of frameworks that are not installed.
           *(name for name, module in _PLACES.items() if module not in ("jax", "torch") or importlib.util.find_spec(module)), *_MODULES]


def __getattr__(name):
    if name in _PLACES:
        if _PLACES[name] not in ("program", "runtime", "executable", "jax"):
            importlib.import_module(".ops", __name__)  # operators of tensors
        try:
            value = getattr(importlib.import_module(f".{_PLACES[name]}", __name__), name)
        except ModuleNotFoundError as error:
            raise ImportError(f"tessera.{name} needs the package '{error.name}': pip install {error.name}", name=error.name) from None
        globals()[name] = value
        return value
    # Submodules such as `tessera.ir` import what they need themselves.
    if name in _MODULES or importlib.util.find_spec(f"{__name__}.{name}"):
        return importlib.import_module(f".{name}", __name__)
    # Operations are available here too: tessera.matmul is tessera.ops.matmul.
    if not name.startswith("_"):
        ops = importlib.import_module(".ops", __name__)
        if name in ops.__all__:
            globals()[name] = getattr(ops, name)
            return globals()[name]
    known = [] if name.startswith("_") else [*__all__, *_PLACES, *importlib.import_module(".ops", __name__).__all__]
    return importlib.import_module(".source", __name__).misspelt(__name__, known)(name)
