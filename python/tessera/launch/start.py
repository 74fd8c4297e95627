# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From options to running ranks. All checks come before anything starts."""

from __future__ import annotations

import os
import secrets
import shlex
import socket
import sys

from ..errors import Error
from . import environment, node, nodes, ports, program
from .arguments import Arguments, make_folder
from .supervisor import supervise


class Plan:
    """The checked options of this node. Raises Error."""

    def __init__(self, arguments: Arguments, environ=os.environ):
        self.arguments, self.environ = arguments, environ
        program.check(arguments.script, arguments.module)
        self.visible = environment.devices(arguments.devices, environ)
        self.count = arguments.nproc_per_node or len(self.visible or ()) or 1
        if self.visible and self.count > len(self.visible):
            raise Error(f"--nproc_per_node is {self.count} and --devices names {len(self.visible)}; each process needs a device of its own")
        if arguments.isolate_devices and not self.visible:
            raise Error("--isolate_devices needs the devices of the processes; name them with --devices")
        self.port = arguments.master_port
        self.control = arguments.control_port or self.port + 1
        if arguments.nnodes > 1:
            if self.control > 65535:
                raise Error(f"--master_port is {self.port}, and {self.control} is not a valid port; name another with --control_port")
            if self.control == self.port:
                raise Error(f"--control_port and --master_port are both {self.port}; rank 0 and node 0's launcher need different ports")
        if not (arguments.wait_for_name and arguments.node_rank):
            ports.resolve("--master_addr", arguments.master_addr)
        self.base = environment.inherited(environ) | environment.threads(self.count, environ)

    def command(self, local_rank: int) -> list[str]:
        """The command line of a rank of this node."""
        arguments = self.arguments
        return program.command(arguments.script, arguments.args, module=arguments.module,
                               local_rank=local_rank if arguments.pass_local_rank else None)

    def variables(self, *, rank: int, size: int, local_rank: int, restart: int = 0, places: list[int] | None = None) -> dict[str, str]:
        """The variables of one rank.

        places: local ranks of the first start that remain, ascending; they keep their devices.
        """
        arguments, visible = self.arguments, self.visible
        places = places if places is not None else list(range(self.count))
        if visible and len(places) < self.count:
            visible = [visible[place] for place in places]
        return environment.variables(
            rank=rank, size=size, local_rank=local_rank, local_size=len(places), node=arguments.node_rank, nodes=arguments.nnodes,
            address=arguments.master_addr, port=self.port, restart=restart, visible=visible, isolate=arguments.isolate_devices)

    def environment(self, **of_rank) -> dict[str, str]:
        """The environment of a rank: that of the launcher, and the variables of the job (docs/launch.md)."""
        return self.base | self.variables(**of_rank)


def dry_run(plan: Plan) -> int:
    """Print the shell command of each rank, one per line, assuming that all nodes have as many ranks as this one."""
    threads = {name: value for name, value in plan.base.items() if plan.environ.get(name) != value}
    for local in range(plan.count):
        variables = plan.variables(rank=plan.arguments.node_rank * plan.count + local, size=plan.arguments.nnodes * plan.count,
                                   local_rank=local)
        words = [f"{name}={shlex.quote(value)}" for name, value in (threads | variables).items()]
        print(" ".join(words + [shlex.quote(word) for word in plan.command(local)]))
    return 0


def run(plan: Plan) -> int:
    """Run the ranks of this node and return the job's exit code. Raises Error."""
    arguments = plan.arguments
    secret = nodes.token(arguments.token_file, plan.environ)
    if arguments.token_file:
        plan.base["TESSERA_JOB_TOKEN_FILE"] = os.path.abspath(arguments.token_file)
    first = arguments.node_rank == 0
    listener = connect = None
    if first and plan.port == 0:
        plan.port = ports.free_port()
    elif first:
        ports.check_free("--master_port", plan.port, arguments.master_addr)
    if arguments.nnodes == 1:
        if not secret:  # a token for this job's ranks only
            plan.base["TESSERA_JOB_TOKEN"] = secrets.token_hex(32)
    else:
        if first:
            where, name = (arguments.bind, "--bind") if arguments.bind else (arguments.master_addr, "--master_addr")
            nodes.check_token(secret, where, name)
            listener = nodes.listen(where, plan.control, name)
        elif not arguments.wait_for_name:
            nodes.check_token(secret, arguments.master_addr, "--master_addr")
        hello = {"node": arguments.node_rank, "nodes": arguments.nnodes, "count": plan.count, "host": socket.gethostname()}

        def connect(poll):
            return nodes.connect(arguments.master_addr, plan.control, secret, hello, arguments.timeout, poll, arguments.wait_for_name)
    if arguments.log_dir:
        make_folder(arguments.log_dir)

    plan.base["TESSERA_LAUNCH_ID"] = secrets.token_hex(16)
    mark = "TESSERA_LAUNCH_ID=" + plan.base["TESSERA_LAUNCH_ID"]
    job = node.Job(node=arguments.node_rank, nodes=arguments.nnodes, count=plan.count, command=plan.command, environment=plan.environment,
                   max_restarts=arguments.max_restarts, min_ranks=arguments.min_ranks, log_dir=arguments.log_dir, grace=arguments.grace,
                   stop_grace=arguments.stop_grace, timeout=arguments.timeout, token=secret, listener=listener, connect=connect)

    def work(signals: int) -> int:
        try:
            return node.Node(job, signals).run()
        except Error as error:
            print(f"tessera: error: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt as stopped:
            return 128 + stopped.args[0]

    return supervise(work, mark)
