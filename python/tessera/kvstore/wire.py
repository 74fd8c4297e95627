# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Messages over ZeroMQ: a JSON header and arrays as raw bytes. Nothing that a peer sends is executed.

No message is longer than a shard. With a job token, all sockets use CURVE with keys derived from the token: processes
without it cannot connect, and data is encrypted. Without a token, sockets are on loopback only.
"""

from __future__ import annotations

import hashlib
import json
import math
import socket

import zmq
import zmq.auth.thread
import zmq.utils.z85

from ..errors import Error
from ..launch import ports

LARGEST_SHARD = 4 << 20  # bytes
_LONGEST_HEADER = 1 << 20
_MOST_FRAMES = 8
_DOMAIN = "tessera-kvstore"


class ProtocolError(Exception):
    """A peer sent an invalid message."""


def pack(header: dict, frames=()) -> list[bytes]:
    """The frames of a message."""
    return [json.dumps(header, separators=(",", ":")).encode(), *frames]


def unpack(frames: list[bytes]) -> tuple[dict, list[bytes]]:
    """The header and the array frames of a message. Raises ProtocolError."""
    if not frames or len(frames) > _MOST_FRAMES or len(frames[0]) > _LONGEST_HEADER:
        raise ProtocolError("frames")
    try:
        header = json.loads(frames[0])
    except (ValueError, RecursionError):
        raise ProtocolError("not JSON") from None
    if not isinstance(header, dict) or not isinstance(header.get("do"), str):
        raise ProtocolError("not a header")
    return header, frames[1:]


def text(header: dict, name: str, longest: int = 1024) -> str:
    """A string field of a header. Raises ProtocolError."""
    value = header.get(name)
    if not isinstance(value, str) or len(value) > longest:
        raise ProtocolError(name)
    return value


def number(header: dict, name: str, least: int = 0, most: int = 1 << 53) -> int:
    """An integer field of a header. Raises ProtocolError."""
    value = header.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ProtocolError(name)
    return value


def real(header: dict, name: str) -> float:
    """A finite number field of a header. Raises ProtocolError."""
    value = header.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ProtocolError(name)
    return float(value)


def frame(frames: list[bytes], count: int) -> bytes:
    """The only frame, of exactly `count` bytes. Raises ProtocolError otherwise."""
    if len(frames) != 1 or len(frames[0]) != count:
        raise ProtocolError("size of an array")
    return frames[0]


def _pair(token: bytes, who: bytes) -> tuple[bytes, bytes]:
    secret = zmq.utils.z85.encode(hashlib.sha256(b"tessera kvstore " + who + b"\0" + token).digest())
    return zmq.curve_public(secret), secret


class _Known:
    def __init__(self, key: bytes):
        self._key = key

    def callback(self, _domain, key: bytes) -> bool:
        return key == self._key


class Sockets:
    """A factory of the sockets of a process. token: the job token, or empty (loopback only)."""

    def __init__(self, token: bytes):
        self.token, self.context, self._auth = token, zmq.Context(), None
        if token and not zmq.has("curve"):
            raise Error("this ZeroMQ was built without CURVE, which a job token needs; install pyzmq from PyPI")

    def listen(self, host: str, port: int, name: str) -> tuple[zmq.Socket, int]:
        """A ROUTER socket and its port. port: 0 picks a free one; name: the option, for messages. Raises Error."""
        made = self._socket(zmq.ROUTER)
        made.setsockopt(zmq.ROUTER_HANDOVER, 1)
        if self.token:
            if self._auth is None:
                self._auth = zmq.auth.thread.ThreadAuthenticator(self.context)
                self._auth.start()
                self._auth.configure_curve_callback(_DOMAIN, _Known(_pair(self.token, b"client")[0]))
            public, secret = _pair(self.token, b"server")
            made.curve_server, made.curve_publickey, made.curve_secretkey = True, public, secret
            made.zap_domain = _DOMAIN.encode()
        try:
            made.bind(address(host, port) if port else address(host, "*"))
        except zmq.ZMQError as error:
            made.close()
            owner = ports.owner_of(port) if port else ""
            raise Error(f"cannot listen at {name} {host}:{port} on host {socket.gethostname()}: {error.strerror.lower()}"
                        + (f", by process {owner}" if owner else "") + "; end that process or name another port") from None
        return made, int(made.getsockopt(zmq.LAST_ENDPOINT).decode().rpartition(":")[2].rstrip("\0"))

    def connect(self, endpoint: str, identity: bytes) -> zmq.Socket:
        """A DEALER socket. ZeroMQ connects once the peer listens, and reconnects if the connection breaks."""
        made = self._socket(zmq.DEALER)
        made.setsockopt(zmq.IDENTITY, identity)
        made.setsockopt(zmq.RECONNECT_IVL, 50)
        made.setsockopt(zmq.RECONNECT_IVL_MAX, 500)
        if self.token:
            made.curve_publickey, made.curve_secretkey = _pair(self.token, b"client")
            made.curve_serverkey = _pair(self.token, b"server")[0]
        made.connect(endpoint)
        return made

    def _socket(self, kind: int) -> zmq.Socket:
        made = self.context.socket(kind)
        made.setsockopt(zmq.LINGER, 0)
        made.setsockopt(zmq.SNDHWM, 0)
        made.setsockopt(zmq.RCVHWM, 0)
        made.setsockopt(zmq.IPV6, 1)
        made.setsockopt(zmq.MAXMSGSIZE, max(LARGEST_SHARD, _LONGEST_HEADER))
        return made

    def close(self) -> None:
        """Close all sockets; pending messages are sent for at most 0.5 s."""
        if self._auth is not None:
            self._auth.stop()
        self.context.destroy(linger=500)  # ms in which pending messages are still sent


def address(host: str, port) -> str:
    """The address of ZeroMQ; IPv6 hosts are in brackets."""
    return f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"
