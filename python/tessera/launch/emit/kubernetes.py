# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Manifests for Kubernetes. Their schemas are the models of the packages kubeflow-training (MPIJob) and kubeflow-trainer-api (TrainJob,
JobSet), which test/Python/launch_emit.py holds each manifest to."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable

from ...errors import Error
from ..arguments import Arguments
from . import count, name, passed

JOBSET_NODE = "node"


def literal(words: list[str]) -> list[str]:
    """Kubernetes expands $(NAME) in commands; what the user wrote is meant as it stands."""
    return [word.replace("$(", "$$(") for word in words]


def image(arguments: Arguments) -> str:
    if arguments.image is None:
        raise Error(f"--emit={arguments.emit} needs the container image that the ranks run in; name it with --image")
    return arguments.image


def metadata(arguments: Arguments) -> dict:
    found = {"name": name(arguments)}
    if arguments.namespace:
        found["namespace"] = arguments.namespace
    return found


def resources(arguments: Arguments) -> dict:
    """The `resources` of a node's container; empty where nothing is asked for."""
    wanted = {"cpu": arguments.cpus_per_node, "nvidia.com/gpu": arguments.gpus_per_node}
    limits = {key: str(value) for key, value in wanted.items() if value}
    return {"limits": limits} if limits else {}


def _token(arguments: Arguments) -> list[dict]:
    return [] if arguments.nnodes == 1 else token(arguments)


def token(arguments: Arguments) -> list[dict]:
    """The variable of the job's secret."""
    return [{"name": "TESSERA_JOB_TOKEN", "valueFrom": {"secretKeyRef": {"name": name(arguments) + "-token", "key": "token"}}}]


def _token_note(arguments: Arguments) -> str:
    return "" if arguments.nnodes == 1 else token_note(arguments)


def token_note(arguments: Arguments) -> str:
    namespace = f" --namespace={arguments.namespace}" if arguments.namespace else ""
    return ("# The nodes share a secret, which is made once:\n"
            f"#   openssl rand -hex 32 | kubectl create secret generic {name(arguments)}-token{namespace} --from-file=token=/dev/stdin\n")


def launch_words(arguments: Arguments, rank: str, address: str, port: str, nodes: int | None = None) -> list[str]:
    """The command of a node, which the shell there completes."""
    nodes = nodes or arguments.nnodes
    words = ["exec", "python3", "-m", "tessera.launch", f"--nnodes={nodes}", f"--nproc_per_node={count(arguments)}"]
    if nodes > 1:
        words += [f'--node_rank="{rank}"', f"--master_addr={address}", f"--master_port={port}", "--wait_for_name"]
    own = [shlex.quote(word) for word in literal(passed(arguments)) if not word.startswith("--master_port=")]
    return ["sh", "-c", " ".join([*words, *own, '"$@"']), "tessera", *literal([arguments.script, *arguments.args])]


def trainjob(arguments: Arguments) -> dict:
    """Kubeflow Trainer's TrainJob on the runtime torch-distributed, which says where node 0 is by PET_* variables."""
    trainer = {"image": image(arguments), "numNodes": arguments.nnodes, "numProcPerNode": count(arguments),
               "command": launch_words(arguments, "$PET_NODE_RANK", '"$PET_MASTER_ADDR"', '"$PET_MASTER_PORT"')}
    if _token(arguments):
        trainer["env"] = _token(arguments)
    if resources(arguments):
        trainer["resourcesPerNode"] = resources(arguments)
    return {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": metadata(arguments),
            "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": trainer}}


def jobset(arguments: Arguments) -> dict:
    """A JobSet of one indexed job, a pod a node; the pods have names in its headless service."""
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
    """The training operator's MPIJob: mpirun in one pod starts the ranks in the others, which meet through MPI."""
    ranks = count(arguments)
    for each in ("devices", "isolate_devices", "max_restarts", "master_port", "control_port", "timeout", "wait_for_name"):
        if each in arguments.given:
            raise Error(f"--{each} is of processes that tessera launch starts; in an MPIJob mpirun does")
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
    """A manifest, and the comment before it."""

    manifest: Callable[[Arguments], dict]
    notes: Callable[[Arguments], str]


KINDS = {"mpijob": Kind(mpijob, _root_note), "trainjob": Kind(trainjob, _token_note), "jobset": Kind(jobset, _token_note)}
