"""Compiles a program and runs it as processes of the backend `cuda` and by `threads`: gpu_ranks.py LIBRARIES FILE RANKS; compares the
results of all ranks."""

import os
import subprocess
import sys
import tempfile

libraries, file, size = sys.argv[1], sys.argv[2], int(sys.argv[3])


def compiled(folder, *options):
    path = os.path.join(folder, "cpu.tsra" if not options else "gpu.tsra")
    subprocess.run(["tessera", "compile", file, "-o", path, *options], check=True, stdout=subprocess.DEVNULL)
    return path


with tempfile.TemporaryDirectory() as folder:
    plain, kernels = compiled(folder), compiled(folder, "--target=cuda", "--arch", "compute_80")
    ranks = []
    for rank in range(size):
        environment = dict(os.environ, LD_LIBRARY_PATH=libraries, TESSERA_RANK=str(rank), TESSERA_SIZE=str(size), TESSERA_LOCAL_RANK="0",
                           TESSERA_RENDEZVOUS=f"file:{folder}/meet")
        ranks.append(subprocess.Popen(["tessera-exec", kernels, "--backend", "cuda"], env=environment, text=True, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT))
    expected = subprocess.run(["tessera-exec", plain], check=True, text=True, capture_output=True).stdout

    def results(text):
        return [line.strip() for line in text.splitlines() if " checksum " in line]

    wanted = results(expected)
    for rank, process in enumerate(ranks):
        said, _ = process.communicate(timeout=60)
        if process.returncode or not wanted or results(said) != wanted:
            sys.exit(f"rank {rank}: {process.returncode}, {results(said) or said}, and threads {wanted}")
    print(f"{size} ranks: equal to threads")
