"""Starts two ranks that share a GPU: two_ranks.py LIBRARIES ARTIFACT0 ARTIFACT1 [OPTION...]; prints the last line of each.
LOCAL_RANKS=0,2 in the environment are their local ranks (0,0)."""

import os
import subprocess
import sys
import tempfile

libraries, artifacts, options = sys.argv[1], sys.argv[2:4], sys.argv[4:]
with tempfile.TemporaryDirectory() as folder:
    ranks, local = [], os.environ.get("LOCAL_RANKS", "0,0").split(",")
    for rank, artifact in enumerate(artifacts):
        environment = dict(os.environ, LD_LIBRARY_PATH=libraries, TESSERA_RANK=str(rank), TESSERA_SIZE="2",
                           TESSERA_LOCAL_RANK=local[rank], TESSERA_RENDEZVOUS=f"file:{folder}/meet")
        ranks.append(subprocess.Popen(["tessera-exec", artifact, "--backend", "cuda", *options], env=environment, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    for rank, process in enumerate(ranks):
        _, said = process.communicate(timeout=60)
        print(f"rank {rank}: {process.returncode} {said.strip()}")
