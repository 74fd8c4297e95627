# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TesseraJob: a job of roles, as a custom resource of Kubernetes (schema: share/kubernetes/tesserajob-crd.json).

Its controller names each pod <job>-<role>-<index> in the headless service <job>, and passes the index in
TESSERA_ROLE_INDEX.
"""

from __future__ import annotations

import re

from ...errors import Error
from ..arguments import Arguments
from . import kubernetes, name

_ROLES = {"scheduler": "Scheduler", "ps": "PS", "worker": "Worker"}
_MOST = 10000
_FORMS = "a job has worker=N, or scheduler=1,ps=M,worker=N, or scheduler=1,worker=N"


def counts(arguments: Arguments) -> dict[str, int]:
    """Number of replicas by role. Raises Error if --roles is invalid."""
    text = arguments.roles
    if text is None:
        return {"worker": arguments.nnodes}
    if "nnodes" in arguments.given:
        raise Error("--nnodes and --roles both set the number of workers; give one of them")
    found: dict[str, int] = {}
    for part in text.split(","):
        role, _, number = part.partition("=")
        if role not in _ROLES:
            raise Error(f"--roles names '{role}'; the roles are {', '.join(_ROLES)}, as {_FORMS.partition('has ')[2]}")
        if role in found:
            raise Error(f"--roles names {role} twice")
        if not re.fullmatch(r"\d{1,6}", number) or not 1 <= int(number) <= _MOST:
            raise Error(f"--roles has {role}='{number}'; a role has 1 to {_MOST} replicas")
        found[role] = int(number)
    if "worker" not in found:
        raise Error(f"--roles has no worker: '{text}'; {_FORMS}")
    if found.get("scheduler", 1) != 1:
        raise Error(f"--roles has scheduler={found['scheduler']}; a job has one scheduler")
    if "ps" in found and "scheduler" not in found:
        raise Error(f"--roles has ps={found['ps']} and no scheduler; servers and workers find each other through it: add scheduler=1")
    return {role: found[role] for role in _ROLES if role in found}


def _commands(arguments: Arguments, roles: dict[str, int]) -> dict[str, list[str]]:
    job, port = name(arguments), arguments.master_port
    root = f"{job}-scheduler-0.{job}"
    script = kubernetes.literal([arguments.script, *arguments.args])
    if "ps" in roles:
        def role(*words: str) -> list[str]:
            return ["python3", "-m", "tessera.kvstore", words[0], "--root", root, "--port", str(port), *words[1:]]
        for given in ("max_restarts", "log_dir", "devices", "isolate_devices", "pass_local_rank", "module", "nproc_per_node"):
            if given in arguments.given:
                raise Error(f"--{given} applies to ranks that tessera launch starts; with parameter servers, each pod is one worker process")
        return {"scheduler": role("scheduler", "--workers", str(roles["worker"]), "--servers", str(roles["ps"])), "ps": role("server"),
                "worker": role("worker") + script}
    if "scheduler" in roles:
        # The scheduler is node 0, to which the workers' launchers and ranks connect. Kubernetes reads $$( as $(.
        nodes = 1 + roles["worker"]
        return {"scheduler": kubernetes.launch_words(arguments, "0", root, str(port), nodes),
                "worker": kubernetes.launch_words(arguments, "$$((TESSERA_ROLE_INDEX + 1))", root, str(port), nodes)}
    return {"worker": kubernetes.launch_words(arguments, "$TESSERA_ROLE_INDEX", f"{job}-worker-0.{job}", str(port), roles["worker"])}


def tesserajob(arguments: Arguments) -> dict:
    """The custom resource. Workers get devices; so does the scheduler if it runs ranks."""
    roles = counts(arguments)
    specs = {}
    for role, command in _commands(arguments, roles).items():
        container: dict = {"name": "tessera", "image": kubernetes.image(arguments), "command": command}
        if sum(roles.values()) > 1:
            container["env"] = kubernetes.token(arguments)
        if kubernetes.resources(arguments) and (role == "worker" or role == "scheduler" and "ps" not in roles):
            container["resources"] = kubernetes.resources(arguments)
        specs[_ROLES[role]] = {"replicas": roles[role], "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    return {"apiVersion": "tessera.dev/v1alpha1", "kind": "TesseraJob", "metadata": kubernetes.metadata(arguments), "spec": {"roles": specs}}


def _notes(arguments: Arguments) -> str:
    return kubernetes.token_note(arguments) if sum(counts(arguments).values()) > 1 else ""


KINDS = {"tesserajob": kubernetes.Kind(tesserajob, _notes)}
