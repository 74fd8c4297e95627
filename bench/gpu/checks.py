# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of the command: each prints its findings, adds its lines to the table, and returns whether all passed."""

import concurrent.futures
import ctypes
import json
import math
import os
import shutil
import statistics
import subprocess
import tempfile
import time

import training
import workloads
from programs import PEERS
from tools import clock, close, library, read_npy, run, say


def results(artifact, folder, names, backend):
    """Values of the results on a backend."""
    files = {name: f"{folder}/{backend}{index}.npy" for index, name in enumerate(names)}
    outputs = [text for name, file in files.items() for text in ("--output", f"{name}={file}")]
    run("tessera-exec", artifact, "--backend", backend, *outputs)
    return {name: read_npy(file) for name, file in files.items()}


def difference(found, expected, kind, roundings):
    """Where values differ, in words; empty if they do not."""
    if close(found, expected, kind, roundings):
        return ""
    if len(found) != len(expected):
        return f"{len(found)} for {len(expected)} values"
    wrong = [at for at, (a, b) in enumerate(zip(found, expected)) if not close([a], [b], kind, roundings)] or [0]
    worst = max(wrong, key=lambda at: abs(found[at] - expected[at]) if math.isfinite(found[at]) else math.inf)
    return f"{len(wrong)} of {len(found)} values, at {worst} {found[worst]:g} for {expected[worst]:g}"


def compared(program, folder, backend):
    """What is wrong with a program on the backend, against `threads`; empty if nothing is."""
    with tempfile.TemporaryDirectory() as values:
        try:
            cpu, gpu = folder / program["cpu"], folder / program["gpu"]
            names = [each["name"] for each in json.loads(run("tessera-exec", cpu, "--json", "-"))["results"]]
            expected, found = results(cpu, values, names, "threads"), results(gpu, values, names, backend)
            differ = {name: difference(found[name][0], *expected[name], program.get("roundings", 1)) for name in names}
            return "; ".join(f"{name}: {text}" for name, text in differ.items() if text)
        except RuntimeError as error:
            return str(error)


def at_once(work, items):
    """(item, work(item)) of each in order, several at a time: processes mostly wait for the driver."""
    with concurrent.futures.ThreadPoolExecutor(max(1, min(8, (os.cpu_count() or 1) // 2))) as pool:
        yield from zip(items, pool.map(work, items))


def correctness(folder, manifest, backend, lines):
    """Every program on the backend against `threads`."""
    wrong, right, late = [], 0, 0
    for program, state in at_once(lambda each: compared(each, folder, backend) if clock.left() > 10 else None, manifest["programs"]):
        if state:
            wrong.append((program["name"], state))
            say(f"  {program['name']}: WRONG: {state}")
        right += state == ""
        late += state is None
    lines.add(f"programs on `{backend}` against `threads`: {right} of {right + len(wrong)} right", "")
    if wrong:
        lines.add("| program | |", "|---|---|", *(f"| {name} | {state} |" for name, state in wrong), "")
    if late:
        lines.add(f"not run within the time of the part: {late} programs", "")
    for text in manifest["left_out"]:
        lines.add(f"left out: {text}", "")
    say(f"  {right} right, {len(wrong)} wrong" + (f", {late} not run" if late else ""))
    return not wrong


def sanitizer(folder, manifest, backend, lines):
    """Each program under each check. A rehearsal uses a tool of this name on the PATH, of the tests."""
    tool = shutil.which("compute-sanitizer") or shutil.which("/usr/local/cuda/bin/compute-sanitizer")
    if not tool:
        lines.add("compute-sanitizer: not installed", "")
        say("  not installed")
        return True
    sound, rows = True, []

    def state_of(each):
        program, check = each
        command = [tool, "--tool", check, "--error-exitcode", "9", "tessera-exec", folder / program["gpu"], "--backend", backend]
        seconds = min(240, clock.left())
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=max(seconds, 1))
            return "ok" if done.returncode == 0 else f"FAILED ({(done.stdout or done.stderr).strip().splitlines()[-1:]})"
        except subprocess.TimeoutExpired:
            return f"not done within {seconds:.0f} s"
    runs = [(program, check) for check in ("memcheck", "racecheck", "synccheck", "initcheck") for program in manifest["sanitized"]]
    for (program, check), state in at_once(state_of, runs):
        # Copies read whole blocks of memory, with unused parts: initcheck findings are informative only.
        sound &= not state.startswith("FAILED") or check == "initcheck"
        rows.append(f"| {program['name']} | {check} | {state} |")
        say(f"  {program['name']}: {check} {state}")
    lines.add("| compute-sanitizer | check | |", "|---|---|---|", *rows, "")
    return sound


def driver_library():
    try:
        return library("libcuda.so.1")
    except OSError:
        return None


def shared_nccl(folder, manifest, rehearsal, lines):
    """Two ranks on this GPU, with and without nccl-check. A rehearsal needs libraries that stand for the driver and NCCL (those of
    the tests, in LD_LIBRARY_PATH)."""
    def left_out(why):
        lines.add(f"two ranks on a GPU: {why}", "")
        say(f"  {why}")
        return True
    if rehearsal and not hasattr(driver_library(), "fake_cuda_living"):
        return left_out("left out in a rehearsal without the fake driver")
    try:
        nccl = library("libnccl.so.2")
    except OSError:
        return left_out("NCCL is not installed")
    version = ctypes.c_int()
    nccl.ncclGetVersion(ctypes.byref(version))
    if version.value < 23000:
        return left_out(f"NCCL {version.value} supports one rank per GPU (2.30 is needed)")
    expected = run("tessera-exec", folder / manifest["two_cpu"])
    states, checker = [], folder / "bin/libtessera-nccl-check.so"
    for name, preload in (("NCCL", ""), ("NCCL behind the checker", str(checker) if checker.exists() else None)):
        if preload is None:
            continue
        with tempfile.TemporaryDirectory() as meeting:
            environment = dict(os.environ, TESSERA_SIZE="2", TESSERA_LOCAL_RANK="0", TESSERA_RENDEZVOUS=f"file:{meeting}/meet",
                               NCCL_MULTI_RANK_GPU_ENABLE="1", LD_PRELOAD=preload, TESSERA_NCCL_CHECK_DIR=meeting)
            ranks = [subprocess.Popen(["tessera-exec", folder / manifest["two"], "--backend", "cuda"], text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(environment, TESSERA_RANK=str(rank)))
                     for rank in range(2)]
            try:
                said = [process.communicate(timeout=min(120, clock.left())) for process in ranks]
                if any(process.returncode for process in ranks):
                    state = f"FAILED: {said[0][1].strip() or said[1][1].strip()}"
                else:
                    state = "ok" if all(out == expected for out, _ in said) else "WRONG results"
            except subprocess.TimeoutExpired:
                state = "FAILED: not done within 120 s"
            finally:
                for process in ranks:
                    if process.poll() is None:
                        process.kill()
        states.append(f"{name} {state}")
        say(f"  {states[-1]}")
    lines.add(f"two ranks on a GPU (NCCL {version.value}): {', '.join(states)}", "")
    return all(state.endswith(" ok") for state in states)


WARM_UP = 10  # steps that do not count: code is loaded, graphs are captured, clocks rise


def step_of(artifact, backend, steps):
    """The median of the steps after a warm-up, by events on the device, and in words what the driver did: operations in the graph of
    a step, and calls of later steps other than its launch."""
    report = json.loads(run("tessera-exec", artifact, "--backend", backend, "--steps", WARM_UP + steps, "--json", "-"))
    driver, later = report["driver"], report["driver"]["later_steps"]
    rest = {name: count for name, count in later.items() if count and name not in ("graph_launches", "reads")}
    graphs = later["graph_launches"] // (WARM_UP + steps - 1)
    launches = f"{driver['first_step']['launches']} in {graphs} graph" + (f", and {rest}" if rest else "")
    return statistics.median(report["timing"]["device_step_seconds"][WARM_UP:]), launches


def median_of(steps, call, events):
    """Seconds of a call: the median over `steps` calls after a warm-up. events: a function that begins a step and returns one that
    ends it and returns another, which gives the seconds once all is done."""
    for _ in range(WARM_UP):
        call()
    spans = []
    for _ in range(steps):
        end = events()
        last = call()
        spans.append(end(last))
    return statistics.median(span() for span in spans)


def torch_events(torch):
    """Events on the device around a step, as ours."""
    def begin():
        first, second = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()

        def end(last):
            second.record()
            return lambda: (second.synchronize(), first.elapsed_time(second) / 1000)[1]
        return end
    return begin


def jax_events():
    """JAX has no events: the host's clock around a step that is waited for, with the latency of a launch."""
    import jax
    start = time.perf_counter()

    def end(last):
        jax.block_until_ready(last)
        seconds = time.perf_counter() - start
        return lambda: seconds
    return end


def peer_times(name, steps, missing):
    """Seconds per step of torch eager, torch.compile and jax.jit, if installed. `missing` gets the reasons why one is not."""
    times = {}
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # the others need memory, too
    workload = next((each for each in workloads.workloads() if each.name == name), None)
    trained = training.KINDS.get(name)

    def attempt(peer, work):
        if peer.split()[0].split(".")[0] in missing:
            return
        try:
            times[peer] = work()
        except ImportError as error:
            missing[peer.split()[0].split(".")[0]] = str(error)
        except Exception as error:  # no supported GPU, or no compiler for its kernels
            missing.setdefault(f"{peer}, {name}", str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__)

    def of_torch(compile_):
        import torch
        torch._dynamo.reset()
        torch.cuda.empty_cache()
        if workload:
            call, torch = workloads.torch_step(workload, compile_)
        elif trained:
            call, torch = training.torch_step(trained, training.Sizes(), compile_)
        else:
            torch.set_float32_matmul_precision("highest")
            text, shapes, kind = PEERS[name]
            values = [torch.randint(0, shape[1], shape[0], device="cuda") if isinstance(shape[0], tuple) else
                      (2 * torch.rand(shape, device="cuda") - 1).to(getattr(torch, kind)) for shape in shapes]
            function = eval(text, {})  # our own text
            made = lambda *each: function(torch, torch.nn.functional, *each)  # noqa: E731
            made = torch.compile(made, mode=None if compile_ is True else compile_) if compile_ else made
            call = lambda: made(*values)  # noqa: E731
        return median_of(steps, call, torch_events(torch))

    def jitted():
        import jax
        if not any(device.platform == "gpu" for device in jax.devices()):
            raise RuntimeError("jax sees no GPU")
        if workload:
            call, _ = workloads.jax_step(workload)
        else:
            jax.config.update("jax_default_matmul_precision", "highest")  # otherwise it uses TF32
            text, shapes, kind = PEERS[name]
            function = eval(text, {})
            key = jax.random.PRNGKey(0)
            values = [jax.random.randint(key, shape[0], 0, shape[1]) if isinstance(shape[0], tuple) else
                      jax.random.uniform(key, shape, kind, minval=-1) for shape in shapes]
            made = jax.jit(lambda *each: function(jax.numpy, jax.nn, *each))
            call = lambda: made(*values)  # noqa: E731
        return median_of(steps, call, jax_events)

    def eager():
        return of_torch(False)

    def compiled():
        return of_torch(True)

    def graphs():
        return of_torch("reduce-overhead")

    attempt("torch eager", eager)
    attempt("torch.compile", compiled)
    if not trained:
        attempt("jax.jit", jitted)
    if workload or trained:  # many kernels, which torch.compile launches one by one otherwise
        attempt("torch.compile, CUDA graphs", graphs)
    return times


def benchmark(folder, manifest, backend, quick, lines):
    peers = ("torch eager", "torch.compile", "torch.compile, CUDA graphs", "jax.jit")
    lines.add(f"| program | launches a step | us | rate | {' | '.join(peers)} |", "|---|---|---|---|---|---|---|---|")
    missing, sound = {}, True
    for program in manifest["benchmarks"]:
        name, artifact = program["name"], folder / program["gpu"]
        if clock.left() < 20:
            lines.add(f"| {name} | not run within the time of the part | | | | | | |")
            continue
        try:
            seconds, launches = step_of(artifact, backend, 5 if quick else 100)
        except RuntimeError as error:
            lines.add(f"| {name} | FAILED: {error} | | | | | | |")
            say(f"  {name}: FAILED: {error}")
            sound = False
            continue
        if backend == "stub" or seconds <= 0:
            state = "ran" if backend == "stub" else "no time on the device"
            lines.add(f"| {name} | {launches} | {state} | | | | | |")
            say(f"  {name}: {state}")
            continue
        times = {} if quick else peer_times(name, 50, missing)
        rate = program["work"] / seconds / 1e12
        cells = [f"{1e6 * times[peer]:.1f}" if peer in times else "not measured" for peer in peers]
        lines.add(f"| {name} | {launches} | {1e6 * seconds:.1f} | {rate:.2f} T{program['unit']}/s | {' | '.join(cells)} |")
        say(f"  {name}: {1e6 * seconds:.1f} us, {rate:.2f} T{program['unit']}/s, {times}")
    lines.add("")
    for peer, why in missing.items():
        lines.add(f"not measured: {peer}: {why}", "")
        say(f"  {peer}: {why}")
    return sound
