# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The connection between two launchers of a job: authenticated frames of JSON over TCP.

A frame is a length (4 bytes, big-endian) and a payload. Handshake: node 0 sends a nonce; the other node answers with
its own nonce, its hello, and an HMAC-SHA-256 of these under the job token; node 0 answers with an HMAC of both nonces.
From then on each payload begins with an HMAC, under a key of the connection, of the direction, the frame's number and
the message. The token itself is never sent. Peers that violate the protocol are dropped.
"""

from __future__ import annotations

import hmac
import json
import secrets
import select
import socket
import time

from ..errors import Error

VERSION = 1
_LONGEST_GREETING, _LONGEST = 1 << 12, 1 << 20
_MAC = 32


class LinkError(Exception):
    """The peer closed the connection or violates the protocol."""


class ProtocolError(LinkError):
    """The peer sent an invalid message."""


def _sign(key: bytes, *parts: bytes) -> bytes:
    text = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    return hmac.new(key, text, "sha256").digest()


class Connection:
    """Sends and receives frames over a non-blocking socket."""

    def __init__(self, sock: socket.socket):
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = sock
        self.last_received = time.monotonic()
        self._in, self._out = b"", b""
        self._key, self._mine, self._theirs = b"", b"", b""
        self._sent = self._received = 0

    def secure(self, key: bytes, is_server: bool) -> None:
        """Sign and verify all further frames with `key`."""
        self._key = key
        self._mine, self._theirs = (b"server", b"client") if is_server else (b"client", b"server")

    @property
    def wants_to_write(self) -> bool:
        """Whether bytes are pending for `flush`."""
        return bool(self._out)

    def send(self, message: dict) -> None:
        """Queue a message and send as much as possible without blocking."""
        payload = json.dumps(message, separators=(",", ":")).encode()
        if self._key:
            payload = _sign(self._key, self._mine, str(self._sent).encode(), payload) + payload
            self._sent += 1
        self._out += len(payload).to_bytes(4, "big") + payload
        self.flush()

    def flush(self) -> None:
        """Send pending bytes as far as possible without blocking."""
        try:
            while self._out:
                self._out = self._out[self.socket.send(self._out):]
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self._out = b""  # the next receive reports the error

    def receive(self) -> list[dict]:
        """The messages that have arrived. Raises LinkError if the connection ended or a message is invalid."""
        try:
            data = self.socket.recv(1 << 16)
            if not data:
                raise LinkError("the connection ended")
            self._in += data
            self.last_received = time.monotonic()
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            raise LinkError(error.strerror) from None
        messages = []
        while len(self._in) >= 4:
            size = int.from_bytes(self._in[:4], "big")
            if size > (_LONGEST if self._key else _LONGEST_GREETING):
                raise ProtocolError("not a message of a launcher")
            if len(self._in) < 4 + size:
                break
            payload, self._in = self._in[4:4 + size], self._in[4 + size:]
            messages.append(self._open(payload))
            if not self._key:
                break  # the next frame may be signed: the caller calls `secure` first
        return messages

    def _open(self, payload: bytes) -> dict:
        if self._key:
            mac, payload = payload[:_MAC], payload[_MAC:]
            if not hmac.compare_digest(mac, _sign(self._key, self._theirs, str(self._received).encode(), payload)):
                raise ProtocolError("a message with a wrong signature")
            self._received += 1
        try:
            message = json.loads(payload)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise ProtocolError("not a message of a launcher")
        return message

    def close(self) -> None:
        """Sends what is pending, then closes the socket."""
        self.flush()
        self.socket.close()


class Greeting:
    """Node 0's side of the handshake of one connection."""

    SECONDS = 10.0

    def __init__(self, connection: Connection, token: bytes):
        self.connection, self._token = connection, token
        self._nonce = secrets.token_bytes(16)
        self.deadline = time.monotonic() + self.SECONDS
        connection.send({"tessera-launch": VERSION, "nonce": self._nonce.hex()})

    def receive(self) -> dict | None:
        """The other node's hello once it has arrived and its HMAC is valid, else None.

        Raises LinkError if it is malformed, and PermissionError if the peer has a different token.
        """
        for message in self.connection.receive():
            try:
                nonce, hello, mac = bytes.fromhex(message["nonce"]), message["hello"], bytes.fromhex(message["mac"])
            except (KeyError, TypeError, ValueError):
                raise LinkError("not a handshake of a launcher") from None
            if not isinstance(hello, dict) or len(nonce) != 16:
                raise LinkError("not a handshake of a launcher")
            if not hmac.compare_digest(mac, _sign(self._token, b"client", self._nonce, nonce, _canonical(hello))):
                self.connection.send({"refused": "the job tokens differ; give all nodes the same --token_file or TESSERA_JOB_TOKEN"})
                raise PermissionError
            self._theirs = nonce
            return hello
        return None

    def accept(self) -> None:
        """Prove knowledge of the token and secure the connection."""
        self.connection.send({"mac": _sign(self._token, b"server", self._nonce, self._theirs).hex()})
        self.connection.secure(_sign(self._token, b"session", self._nonce, self._theirs), is_server=True)

    def refuse(self, text: str) -> None:
        """Send the reason and close the connection."""
        self.connection.send({"refused": text})
        self.connection.close()


def greet(sock: socket.socket, token: bytes, hello: dict, seconds: float) -> Connection:
    """The other node's side of the handshake; blocks for at most `seconds` per message.

    Raises Error if node 0 refuses this node, and LinkError if it does not answer.
    """
    connection = Connection(sock)
    first = _wait(connection, seconds)
    try:
        nonce = bytes.fromhex(first["nonce"])
        version = first["tessera-launch"]
    except (KeyError, TypeError, ValueError):
        raise Error("the process that listens there is not a Tessera launcher") from None
    if version != VERSION:
        raise Error(f"it has version {version!r} of the launcher's protocol and this host has {VERSION}; install the same version")
    mine = secrets.token_bytes(16)
    connection.send({"nonce": mine.hex(), "hello": hello, "mac": _sign(token, b"client", nonce, mine, _canonical(hello)).hex()})
    answer = _wait(connection, seconds)
    if "refused" in answer:
        raise Error("it refuses this node: " + str(answer["refused"])[:500])
    expected = _sign(token, b"server", nonce, mine).hex()
    if not hmac.compare_digest(str(answer.get("mac", "")), expected):
        raise Error("it has another job token")
    connection.secure(_sign(token, b"session", nonce, mine), is_server=False)
    return connection


def _canonical(hello: dict) -> bytes:
    return json.dumps(hello, sort_keys=True, separators=(",", ":")).encode()


def _wait(connection: Connection, seconds: float) -> dict:
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        reads, writes, _ = select.select([connection.socket], [connection.socket] if connection.wants_to_write else [], [], left)
        if writes:
            connection.flush()
        if reads:
            try:
                messages = connection.receive()
            except ProtocolError:
                raise Error("the process that listens there is not a Tessera launcher") from None
            if messages:
                return messages[0]
    raise LinkError("no answer")
