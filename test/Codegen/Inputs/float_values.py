"""Compares conversions of 16-bit floats, and functions over all magnitudes, with NumPy's and libm's in f64.

    float_values.py FOLDER PROGRAM COMMAND...

runs COMMAND on the program float_values.mlir and prints the errors, or "right"."""
import math
import os
import subprocess
import sys

import numpy as np

folder, program, *command = sys.argv[1:]
os.makedirs(folder, exist_ok=True)
os.chdir(folder)
random = np.random.default_rng(0)
# All of f16; of f32 all bits, moderate ones, and ties of f16 and bf16; of f64 the same, and close to ties.
h = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
f = random.integers(0, 1 << 32, 20000, dtype=np.uint32).view(np.float32)
f[:8000] = random.normal(size=8000) * 30
halves = np.abs(random.choice(h[np.isfinite(h)], 4000)).astype(np.float64)
ties = halves + np.spacing(halves.astype(np.float16)).astype(np.float64) / 2
f[8000:12000] = ties
f[12000:14000] = (f[12000:14000].view(np.uint32) >> 16 << 16 | 0x8000).view(np.float32)  # ties of bf16
f[-6:] = 65504, 65519.996, 65520, -np.inf, np.nan, 0.0
d = random.integers(0, 1 << 63, 20000).astype(np.uint64).view(np.float64)
d[:8000] = random.normal(size=8000) * np.exp2(random.integers(-30, 60, 8000))
d[8000:12000] = ties * (1 + random.integers(-1, 2, 4000) * 2.0**-50)
values = dict(h=h, f=f, d=d)
for name, value in values.items():
    np.save(name + ".npy", value)
results = ("wide", "narrow", "narrow64", "brain32", "brain64", "sin", "cos", "sinh", "cosh", "sin64")
files = [f"--input={name}={name}.npy" for name in values] + [f"--output={name}=out_{name}.npy" for name in results]
subprocess.run([*command, program, *files], check=True, stdout=subprocess.DEVNULL)
got = {name: np.load(f"out_{name}.npy") for name in results}
wrong = []


def equal(name, expected):
    differ = ~((got[name] == expected) | (np.isnan(got[name]) & np.isnan(expected)))
    if differ.any():
        wrong.append(f"{name}: {differ.sum()} differ, the first of {np.flatnonzero(differ)[0]}")


def close(name, expected, bound, unit):
    """Within `bound` times `unit(expected)`; NaN and infinities must agree."""
    equal(name, np.where(np.isfinite(expected), got[name], expected))
    finite = np.isfinite(expected) & np.isfinite(got[name])
    error = np.max(np.abs(got[name][finite] - expected[finite]) / unit(expected[finite]))
    if not error <= bound:
        wrong.append(f"{name}: off by {error}")


def of(function, values):
    return np.array([function(value) if math.isfinite(value) else math.nan for value in values.tolist()])


def place(expected):
    return np.spacing(np.abs(expected).astype(np.float32)).astype(np.float64)


with np.errstate(all="ignore"):
    equal("wide", h.astype(np.float32))
    equal("narrow", f.astype(np.float16))
    equal("narrow64", d.astype(np.float16))
    bits = f.view(np.uint32)
    nearest = (bits + 0x7FFF + (bits >> 16 & 1) >> 16 << 16).view(np.float32)
    equal("brain32", np.where(np.isnan(f), f, nearest))
    # bf16 without a library: the f64 without its last 45 bits, to nearest even, from f32's smallest number on.
    mantissa, exponent = np.frexp(np.where(np.isfinite(d), d, 0))
    least = np.maximum(exponent - 8, -133)
    rounded = np.ldexp(np.rint(np.ldexp(mantissa, exponent - least)), least).astype(np.float32)
    equal("brain64", np.where(np.isfinite(d), rounded, d.astype(np.float32)))
    wide = f.astype(np.float64)
    close("sin", of(math.sin, wide), 1, place)
    close("cos", of(math.cos, wide), 1, place)
    for name, function in (("sinh", np.sinh), ("cosh", np.cosh)):
        exact = function(wide)
        exact = np.where(np.abs(exact) > np.finfo(np.float32).max, np.sign(exact) * np.inf, exact)
        close(name, exact, 4, place)
    close("sin64", of(math.sin, d), 1e-15, np.ones_like)
print(*(wrong or ["right"]), sep="\n")
