# Written by scripts/update-stubs from the compiled module.
"""
Compiler and runtime of Tessera; tessera.Program and tessera.Session wrap it.
"""

from collections.abc import Sequence
from typing import Annotated

import numpy
from numpy.typing import NDArray


class Error(Exception):
    pass

def lower(text: str, to: str, name: str = 'program', function: str = '', compile_from: str = 'input', objective: str = 'time', topology: str = '', passes: str = '', search: str = '', minimise: str = 'time', fusion: str = '', memory_budget: float = 0.0, time_limit: float = 10.0, devices: int = 0, remarks: bool = False, fully_use_devices: bool = True, overlap: bool | None = None, narrow_reductions: bool = False, attention_sequence: str = 'auto') -> tuple[str, str]:
    """
    The program as MLIR text in phase `to`, and the compiler's diagnostics. Phases are in docs/architecture.md; "input" only parses and verifies.
    """

def explain(text: str, name: str = 'program', function: str = '', compile_from: str = 'input', objective: str = 'time', topology: str = '', passes: str = '', search: str = '', minimise: str = 'time', fusion: str = '', memory_budget: float = 0.0, time_limit: float = 10.0, devices: int = 0, remarks: bool = False, fully_use_devices: bool = True, overlap: bool | None = None, narrow_reductions: bool = False, attention_sequence: str = 'auto') -> tuple[tuple[str, str], str]:
    """
    The report of docs/report.md as JSON text and as a table, and the compiler's diagnostics.
    """

def compile(text: str, target: str = 'cpu', arch: str = '', name: str = 'program', function: str = '', compile_from: str = 'input', objective: str = 'time', topology: str = '', passes: str = '', search: str = '', minimise: str = 'time', fusion: str = '', memory_budget: float = 0.0, time_limit: float = 10.0, devices: int = 0, remarks: bool = False, fully_use_devices: bool = True, overlap: bool | None = None, narrow_reductions: bool = False, attention_sequence: str = 'auto') -> tuple[bytes, str]:
    """
    The bytes of an artifact for Session, and the compiler's diagnostics. `target` is cpu, cuda or stub; `arch` the architectures of cuda, with commas.
    """

class Tensor:
    """An argument or a result of a program."""

    @property
    def name(self) -> str: ...

    @property
    def dtype(self) -> str:
        """f64, f32, f16, bf16, i64, i32, i16, i8, i1 or index"""

    @property
    def shape(self) -> list[int]: ...

    @property
    def home(self) -> str:
        """mesh and layout as JSON (docs/step-format.md), or "\""""

    @property
    def feeds(self) -> int:
        """the argument of the next step that a result is, or -1"""

class Value:
    """A result that stays on its devices."""

    def read(self, data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    def memory(self, stream: int = 0) -> tuple[int, int]:
        """
        The GPU that holds the whole value (-1: none) and its address, valid for later work of the CUDA stream.
        """

    def dlpack(self, shape: Sequence[int], code: int, bits: int, stream: int) -> object:
        """A DLPack capsule."""

class Memory:
    """A foreign array on a GPU, from a DLPack capsule."""

    def __init__(self, capsule: object) -> None: ...

    @property
    def device(self) -> int: ...

    @property
    def address(self) -> int: ...

    @property
    def shape(self) -> list[int]: ...

    @property
    def type(self) -> tuple[int, int, int]:
        """DLPack's code, bits and lanes"""

    @property
    def is_dense(self) -> bool:
        """row-major, without gaps"""

class Session:
    """An artifact on its devices. Buffers are flat arrays of bytes."""

    def __init__(self, artifact: bytes, backend: str = 'threads', devices: int = 0, cores: int = 0, seed: int = 0, precision: str = '') -> None: ...

    @property
    def arguments(self) -> list[Tensor]: ...

    @property
    def results(self) -> list[Tensor]: ...

    def set_argument(self, index: int, data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def run(self, steps: int = 1) -> None: ...

    def read_result(self, index: int, data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    def argument_box(self, index: int) -> list[list[tuple[int, int]]] | None:
        """
        The box of an argument that this process holds, in a list that is empty if it holds none; None if whole values must be given.
        """

    def result_box(self, index: int) -> list[list[tuple[int, int]]] | None: ...

    def set_argument_box(self, index: int, data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def read_result_box(self, index: int, data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    def reads_alone(self, index: int) -> bool:
        """Whether this process reads a result without the others."""

    def keep_result(self, index: int) -> Value:
        """
        A copy of a result on its devices; None if the host has it, or other processes have a part.
        """

    def set_argument_value(self, index: int, value: Value) -> bool:
        """False if the argument and the value have different layouts."""

    def set_argument_memory(self, index: int, data: int, bytes: int, device: int) -> bool:
        """The same for GPU memory, which the next run reads."""

    @property
    def counters(self) -> dict[str, int]:
        """counters of the backend's driver, by name"""

    @property
    def wire_bytes(self) -> int:
        """bytes on the wire since the session was opened"""

    @property
    def keeps_on_devices(self) -> bool:
        """whether results stay on the devices until they are read"""

def backend_target(name: str) -> str:
    """The target of `compile` whose code a backend executes: cpu, cuda, stub."""

def device_memory(device: int) -> list[int]:
    """
    Bytes of the open sessions on a device: used, reserved, and the peaks of both.
    """

def reset_peak_memory(device: int) -> None:
    """Resets the peaks to the current values."""

def devices_with_memory() -> list[int]:
    """The devices on which this process has had memory, ascending."""

class Buffered:
    """A base class with the buffer protocol."""
