# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Commands, the driver's answers, arrays in files, and the table."""

import array
import ctypes
import math
import os
import pathlib
import re
import site
import struct
import subprocess
import sys
import time


def say(text):
    print(text, flush=True)


class Clock:
    """The remaining time of a part, in seconds."""

    def __init__(self):
        self._end = math.inf

    def start(self, seconds):
        self._end = time.monotonic() + seconds

    def left(self):
        return max(self._end - time.monotonic(), 0)


clock = Clock()


def pip_libraries():
    """Folders of NVIDIA's libraries installed by pip (cuBLAS, NCCL, cuDNN), for the loader."""
    found = {folder for place in {*sys.path, *site.getsitepackages(), site.getusersitepackages()} if place
             for folder in pathlib.Path(place).glob("nvidia/*/lib") if any(folder.glob("*.so*"))}
    return sorted(map(str, found))


def library(name):
    """A library by its name: in the loader's path, then in the present LD_LIBRARY_PATH."""
    for path in (name, *(f"{folder}/{name}" for folder in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if folder)):
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise OSError(f"{name}: not found")


def run(*command, environment=None, timeout=600):
    """The output of a command; raises with the last line of standard error."""
    try:
        done = subprocess.run([str(each) for each in command], capture_output=True, text=True, timeout=min(timeout, clock.left()),
                              env=dict(os.environ, **(environment or {})))
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RuntimeError(str(error)) from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise RuntimeError(f"{' '.join(map(str, command[:3]))} …: {said[-1] if said else done.returncode}")
    return done.stdout


class Lines:
    """A file of lines, flushed after each."""

    def __init__(self, path):
        self.path, self.lines = pathlib.Path(path), []

    def add(self, *lines):
        self.lines += lines
        self.path.write_text("\n".join(self.lines) + "\n")


def gpus():
    """The number of GPUs, and the reason if there is none."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return 0, f"there is no CUDA driver ({error})"
    if code := cuda.cuInit(0):
        return 0, f"cannot initialize the CUDA driver (error {code})"
    count = ctypes.c_int()
    cuda.cuDeviceGetCount(ctypes.byref(count))
    return count.value, "the driver knows no GPU"


def name_of():
    """Name, architecture and driver of the first GPU, from the driver, since nvidia-smi may be missing."""
    cuda = ctypes.CDLL("libcuda.so.1")
    cuda.cuInit(0)
    name, version = ctypes.create_string_buffer(256), ctypes.c_int()
    cuda.cuDeviceGetName(name, 255, 0)
    cuda.cuDriverGetVersion(ctypes.byref(version))
    return f"{name.value.decode()}, sm_{capability_of()}, CUDA {version.value // 1000}.{version.value % 1000 // 10}"


def capability_of():
    cuda = ctypes.CDLL("libcuda.so.1")
    cuda.cuInit(0)
    parts = []
    for attribute in (75, 76):  # major and minor
        value = ctypes.c_int()
        cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, 0)
        parts.append(value.value)
    return 10 * parts[0] + parts[1]


def memory_of():
    cuda = ctypes.CDLL("libcuda.so.1")
    cuda.cuInit(0)
    size = ctypes.c_size_t()
    cuda.cuDeviceTotalMem_v2(ctypes.byref(size), 0)
    return size.value


def read_npy(path):
    """Numbers of an array, and whether they are of 16-bit floats, of other floats, or exact."""
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<H", data[8:10])[0]
    kind = re.search(rb"'descr': *'[<|=]?([A-Za-z]\d+)'", data[10:10 + size]).group(1).decode()
    body = data[10 + size:]
    if kind == "u2":  # bf16: the upper half of an f32
        halves = array.array("H", body)
        return list(array.array("f", array.array("I", [each << 16 for each in halves]).tobytes())), "half"
    code = {"f4": "f", "f8": "d", "i4": "i", "i8": "q", "b1": "?", "i1": "b", "u1": "B", "f2": "e", "i2": "h"}[kind]
    values = list(struct.unpack(f"<{len(body) // struct.calcsize(code)}{code}", body))
    return values, {"f2": "half", "f4": "single", "f8": "double"}.get(kind, "exact")


def close(found, expected, kind, roundings=1):
    """docs/testing.md: |a - b| <= r max(|b|, rms of b). `roundings` multiplies r. Differences of a rounding of a sum of terms of size
    one are none: what is left of sums that cancel."""
    if kind == "exact":
        return found == expected
    tolerance = roundings * {"half": 2e-2, "single": 1e-4, "double": 1e-10}[kind]
    rounding = {"half": 0, "single": 2**-23, "double": 2**-52}[kind]
    finite = [b for b in expected if math.isfinite(b)]
    rms = math.sqrt(sum(b * b for b in finite) / max(len(finite), 1))
    return len(found) == len(expected) and all(
        a == b or (a != a and b != b) or abs(a - b) <= max(rounding, tolerance * max(abs(b), rms)) for a, b in zip(found, expected))
