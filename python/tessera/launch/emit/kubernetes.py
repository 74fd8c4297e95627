# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Manifests for Kubernetes.

test/Python/launch_emit.py validates them with the models of the packages kubeflow-training (MPIJob) and
kubeflow-trainer-api (TrainJob, JobSet).
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable

from ...errors import Error
from ..arguments import Arguments
from . import count, name, passed

JOBSET_NODE = "node"


def literal(words: list[str]) -> list[str]:
    """Escape $(NAME), which Kubernetes would expand, in the user's words."""
    return [word.replace("$(", "$$(") for word in words]


def image(arguments: Arguments) -> str:
    """The container image of --image. Raises Error without one."""
    if arguments.image is None:
        raise Error(f"--emit={arguments.emit} needs the container image of the ranks; name it with --image")
    return arguments.image


def metadata(arguments: Arguments) -> dict:
    found = {"name": name(arguments)}
    if arguments.namespace:
        found["namespace"] = arguments.namespace
    return found


def resources(arguments: Arguments) -> dict:
    """The `resources` of a node's container; empty without --gpus_per_node and --cpus_per_node."""
    wanted = {"cpu": arguments.cpus_per_node, "nvidia.com/gpu": arguments.gpus_per_node}
    limits = {key: str(value) for key, value in wanted.items() if value}
    return {"limits": limits} if limits else {}


def _token(arguments: Arguments) -> list[dict]:
    return [] if arguments.nnodes == 1 else token(arguments)


def token(arguments: Arguments) -> list[dict]:
    """The environment variable with the job's secret."""
    return [{"name": "TESSERA_JOB_TOKEN", "valueFrom": {"secretKeyRef": {"name": name(arguments) + "-token", "key": "token"}}}]


def _token_note(arguments: Arguments) -> str:
    return "" if arguments.nnodes == 1 else token_note(arguments)


def token_note(arguments: Arguments) -> str:
    """The comment that explains how to create the job's secret."""
    namespace = f" --namespace={arguments.namespace}" if arguments.namespace else ""
    return ("# The nodes share a secret; create it once:\n"
            f"#   openssl rand -hex 32 | kubectl create secret generic {name(arguments)}-token{namespace} --from-file=token=/dev/stdin\n")


def launch_words(arguments: Arguments, rank: str, address: str, port: str, nodes: int | None = None) -> list[str]:
    """The launch command of a node; the node's shell expands `rank`, `address` and `port`."""
    nodes = nodes or arguments.nnodes
    words = ["exec", "python3", "-m", "tessera.launch", f"--nnodes={nodes}", f"--nproc_per_node={count(arguments)}"]
    if nodes > 1:
        words += [f'--node_rank="{rank}"', f"--master_addr={address}", f"--master_port={port}", "--wait_for_name"]
    own = [shlex.quote(word) for word in literal(passed(arguments)) if not word.startswith("--master_port=")]
    return ["sh", "-c", " ".join([*words, *own, '"$@"']), "tessera", *literal([arguments.script, *arguments.args])]


def trainjob(arguments: Arguments) -> dict:
    """A TrainJob of Kubeflow Trainer; its runtime torch-distributed sets the address of node 0 in PET_* variables."""
    trainer = {"image": image(arguments), "numNodes": arguments.nnodes, "numProcPerNode": count(arguments),
               "command": launch_words(arguments, "$PET_NODE_RANK", '"$PET_MASTER_ADDR"', '"$PET_MASTER_PORT"')}
    if _token(arguments):
        trainer["env"] = _token(arguments)
    if resources(arguments):
        trainer["resourcesPerNode"] = resources(arguments)
    return {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": metadata(arguments),
            "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": trainer}}


def jobset(arguments: Arguments) -> dict:
    """A JobSet of one indexed job with one pod per node; its headless service names the pods."""
    job = name(arguments)
    container = {"name": JOBSET_NODE, "image": image(arguments),
                 "command": launch_words(arguments, "$JOB_COMPLETION_INDEX", f"{job}-{JOBSET_NODE}-0-0.{job}", str(arguments.master_port))}
    if _token(arguments):
        container["env"] = _token(arguments)
    if resources(arguments):
        container["resources"] = resources(arguments)
    pods = {"parallelism": arguments.nnodes, "completions": arguments.nnodes, "completionMode": "Indexed", "backoffLimit": 0,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata(arguments),
            "spec": {"network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
                     "replicatedJobs": [{"name": JOBSET_NODE, "replicas": 1, "template": {"spec": pods}}]}}


def mpijob(arguments: Arguments) -> dict:
    """An MPIJob of the training operator: mpirun in one pod starts the ranks in the others, which connect through MPI."""
    ranks = count(arguments)
    for each in ("devices", "isolate_devices", "max_restarts", "master_port", "control_port", "timeout", "wait_for_name"):
        if each in arguments.given:
            raise Error(f"--{each} applies to processes that tessera launch starts; in an MPIJob mpirun starts them")
    command = ["mpirun", "-np", str(arguments.nnodes * ranks), "-npernode", str(ranks), "--bind-to", "none"]
    command += ["--allow-run-as-root"] * arguments.allow_run_as_root
    command += ["python3", "-m", "tessera.launch.rank", *literal([*passed(arguments), arguments.script, *arguments.args])]
    launcher = {"name": "mpi", "image": image(arguments), "command": command}
    worker = {"name": "mpi", "image": image(arguments)}
    if resources(arguments):
        worker["resources"] = resources(arguments)

    def replicas(number: int, container: dict) -> dict:
        return {"replicas": number, "restartPolicy": "Never", "template": {"spec": {"containers": [container]}}}
    return {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "metadata": metadata(arguments),
            "spec": {"slotsPerWorker": ranks, "runPolicy": {"cleanPodPolicy": "Running", "backoffLimit": 0},
                     "mpiReplicaSpecs": {"Launcher": replicas(1, launcher), "Worker": replicas(arguments.nnodes, worker)}}}


def _root_note(arguments: Arguments) -> str:
    return "" if arguments.allow_run_as_root else "# If the image's user is root, Open MPI needs --allow-run-as-root.\n"


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of manifest, and the comment printed before it."""

    manifest: Callable[[Arguments], dict]
    notes: Callable[[Arguments], str]


KINDS = {"mpijob": Kind(mpijob, _root_note), "trainjob": Kind(trainjob, _token_note), "jobset": Kind(jobset, _token_note)}
