# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exit codes, signals and the messages of failures."""

from __future__ import annotations

import os
import signal


def signal_name(number: int) -> str:
    """"SIGKILL"; "unknown" for a number without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def exit_code(status: int) -> int:
    """The exit code of a waitpid status as a shell gives it: the code, or 128 + the signal."""
    code = status_code(status)
    return code if code >= 0 else 128 - code


def status_code(status: int) -> int:
    """The exit code of a waitpid status, or the negated signal."""
    return os.waitstatus_to_exitcode(status)


def ended(code: int) -> str:
    """How a process with an exit code, or a negated signal, ended."""
    if code < 0:
        return f"was ended by signal {-code} ({signal_name(-code)})"
    return f"ended with exit code {code}"


def describe(failure: dict) -> str:
    """The message of a failure: {"text": ...}, or of a rank: rank, node, host, local_rank, pid, code, lines."""
    if "rank" not in failure:
        return failure["text"]
    text = (f"rank {failure['rank']} (host {failure['host']}, node {failure['node']}, local rank {failure['local_rank']}, "
            f"process {failure['pid']}) {ended(failure['code'])}")
    if failure["lines"]:
        text += "; its last lines:" + "".join(f"\n  {line}" for line in failure["lines"])
    return text


def shell_code(failure: dict) -> int:
    """The exit code of the launcher after a failure."""
    code = failure.get("code", 1)
    return code if code >= 0 else 128 - code
