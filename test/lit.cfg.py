import os
import shutil
import subprocess
import lit.formats

config.name = "Tessera"
config.test_format = lit.formats.ShTest(True)
config.suffixes = [".mlir", ".test"]
config.test_source_root = os.path.dirname(__file__)
config.excludes = ["Inputs"]
config.environment["PATH"] = os.pathsep.join(
    [config.tessera_tools_dir, config.llvm_tools_dir, config.environment["PATH"]])
config.substitutions.append(("%python", config.python))
config.substitutions.append(("%examples", os.path.join(config.tessera_source_dir, "examples")))
config.substitutions.append(("%fake_gpu", os.path.join(config.unittests, "fake-gpu")))
config.substitutions.append(("%loopback_gpu", os.pathsep.join(
    os.path.join(config.unittests, each) for each in ("loopback-nccl", "fake-gpu"))))
config.substitutions.append(("%unittests", config.unittests))
config.substitutions.append(("%demo_dialect", config.demo_dialect))
config.substitutions.append(("%source", config.tessera_source_dir))

config.substitutions.append(("%tools", config.tessera_tools_dir))

# NVIDIA's assembler, searched like in the compiler.
cuda = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
if shutil.which("ptxas") or os.access(os.path.join(cuda, "bin", "ptxas"), os.X_OK):
    config.available_features.add("ptxas")
# The same assembler as a library; a toolkit has both.
config.substitutions.append(("%cuda", cuda))
if all(os.path.exists(os.path.join(cuda, *path)) for path in (("bin", "ptxas"), ("lib64", "libnvJitLink.so"))):
    config.available_features.add("nvjitlink")
# The disassembler, searched like in bench/gpu/kernels.
packaged = "import glob, sysconfig, sys; sys.exit(not glob.glob(sysconfig.get_paths()['purelib'] + '/nvidia/*/bin/nvdisasm'))"
if (shutil.which("nvdisasm") or os.access(os.path.join(cuda, "bin", "nvdisasm"), os.X_OK)
        or subprocess.run([config.python, "-c", packaged]).returncode == 0):
    config.available_features.add("nvdisasm")
for name in ("CUDA_HOME", "CUDA_PATH"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

# Levels of this machine, and emulators of others.
flags = open("/proc/cpuinfo").read().split() if os.path.exists("/proc/cpuinfo") else []
for level, flag in (("x86_64-v3", "avx2"), ("x86_64-v4", "avx512vl"), ("avx512_bf16", "avx512_bf16")):
    if flag in flags:
        config.available_features.add(level)
if "avx2" in flags and shutil.which("qemu-x86_64"):
    config.available_features.add("qemu-x86_64")

# The runtime for aarch64, cross-built by `make aarch64`.
cross = os.path.join(config.tessera_source_dir, "build-aarch64", "bin", "tessera-exec")
if shutil.which("qemu-aarch64") and os.path.exists(cross):
    config.available_features.add("aarch64-exec")
    config.substitutions.append(("%aarch64_exec", f"qemu-aarch64 -L /usr/aarch64-linux-gnu {cross}"))
else:
    lit_config.note("no qemu-aarch64, or `make aarch64` was not run: no artifact is run on aarch64")

# Python tests need the package, most also the module and JAX; tests without their dependencies are skipped.
config.substitutions.append(("%tessera_python", config.tessera_python))
config.environment["PYTHONPATH"] = config.tessera_python_path


def has(*modules):
    find = "import sys, importlib.util as u; sys.exit(any(u.find_spec(m) is None for m in sys.argv[1:]))"
    return bool(config.tessera_python) and subprocess.run(
        [config.tessera_python, "-c", find, *modules], env=config.environment).returncode == 0


if has():
    config.available_features.add("python")
if has("tessera._core", "numpy"):
    config.available_features.add("tessera-core")
    if has("torch"):
        config.available_features.add("torch")
        if has("transformers"):
            config.available_features.add("transformers")
    if has("zmq"):
        config.available_features.add("zmq")
    if has("jax"):
        config.available_features.add("jax")
        if has("optax"):
            config.available_features.add("optax")

# Two hosts on this machine, as network namespaces.
if os.geteuid() == 0 and shutil.which("ip") and shutil.which("nsenter") and subprocess.run(
        ["unshare", "--net", "--uts", "--mount", "ip", "link", "add", "one", "type", "veth", "peer", "name", "other"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
    config.available_features.add("netns")
else:
    lit_config.note("not root, or no network namespaces: tests between two hosts are skipped")

# A browser, for the page of `tessera topo view`.
for name in ("chromium", "chromium-browser", "google-chrome"):
    if shutil.which(name):
        config.available_features.add("chromium")
        config.substitutions.append(("%chromium", f"timeout 60 {shutil.which(name)} --headless --no-sandbox --disable-gpu --hide-scrollbars"))
        break
else:
    lit_config.note("no chromium: the page of tessera topo view is not opened in a browser")

# Launchers of MPI, each available if the shim of its library was built: %mpirun of Open MPI, %mpich of MPICH.
root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
for feature, substitution, names, mark, options in (
        ("openmpi", "%mpirun", ("mpirun.openmpi", "mpirun"), "Open MPI", root + ["--oversubscribe", "--bind-to", "none"]),
        ("mpich", "%mpich", ("mpirun.mpich", "mpiexec.hydra", "mpirun"), "HYDRA", [])):
    shim = os.path.join(config.tessera_tools_dir, "..", "lib", f"libtessera-mpi-{feature}.so")
    for name in names:
        command = shutil.which(name)
        if command and os.path.exists(shim) and mark in subprocess.run(
                [command, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout:
            config.available_features.add(feature)
            config.substitutions.append((substitution, " ".join([command] + options)))
            break
    else:
        lit_config.note(f"no {feature}, or Tessera was built without it: tests of the backend mpi on it are skipped")
