# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Resident memory of training steps: `of_program` and `of_torch` measure in a process of their own.

The peak is the kernel's (VmHWM) during two steps after a first one, less what the process has before it opens the program
(PyTorch: makes the model), when a tiny one has loaded the libraries.
"""

from __future__ import annotations

import ctypes
import gc
import os
import re
import subprocess
import sys
import tempfile


def _status(field):
    with open("/proc/self/status") as file:
        return 1024 * int(re.search(rf"^{field}:\s+(\d+) kB", file.read(), re.MULTILINE)[1])


def _resident():
    """Bytes, without memory that was freed."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return _status("VmRSS")


def _peak_of(step):
    """The most resident bytes during two steps. One before fills what is kept: arguments, states, panels of products."""
    step()
    _resident()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # resets VmHWM
    step()
    step()
    return _status("VmHWM")


def _child(*arguments):
    done = subprocess.run([sys.executable, __file__, *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True)
    return int(done.stdout.split()[-1])


_TINY = """func.func @main(%a: tensor<32x32xf32>, %b: tensor<32x32xbf16>) -> (tensor<32x32xf32>, tensor<32x32xbf16>) {
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %none = arith.constant dense<0.0> : tensor<32x32xbf16>
  %0 = linalg.matmul ins(%a, %a : tensor<32x32xf32>, tensor<32x32xf32>) outs(%zero : tensor<32x32xf32>) -> tensor<32x32xf32>
  %1 = linalg.matmul ins(%b, %b : tensor<32x32xbf16>, tensor<32x32xbf16>) outs(%none : tensor<32x32xbf16>) -> tensor<32x32xbf16>
  return %0, %1 : tensor<32x32xf32>, tensor<32x32xbf16>
}
"""


def of_program(program, cores=0):
    """Bytes of two steps of a tessera.Program with random arguments, by `cores` workers (0: all)."""
    import tessera as ts
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, name) for name in ("tiny.tsra", "program.tsra")]
        for path, each in zip(files, (ts.Program(_TINY), program)):
            with open(path, "wb") as file:
                file.write(each.compile())
        return _child("program", *files, cores)


def of_torch(name, small=False):
    """Bytes of two training steps of a network of models.py in PyTorch."""
    return _child("torch", name, *["small"][:small])


def _program(tiny, path, cores):
    import tessera as ts
    warm = ts.load(tiny, cores=int(cores))
    warm._session.step()
    before = _resident()
    program = ts.load(path, cores=int(cores))
    return _peak_of(program._session.step) - before


def _torch(name, small=""):
    import torch

    from models import make, torch_step
    tiny = torch.nn.Linear(8, 8)
    torch_step(tiny, tiny, torch.ones(4, 8), torch.zeros(4, dtype=torch.long))()
    before = _resident()
    model, x, labels = make(name, bool(small))
    return _peak_of(torch_step(model, model, x, labels)) - before


if __name__ == "__main__":
    print({"program": _program, "torch": _torch}[sys.argv[1]](*sys.argv[2:]))
