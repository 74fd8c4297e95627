# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Node 0's connections to the other launchers."""

from __future__ import annotations

import selectors
import socket
import sys
import time

from .coordinator import Coordinator
from .link import Connection, LinkError, Greeting

_MOST_GREETINGS = 256


class Hub:
    """Accepts the other nodes, passes their messages to the coordinator, and drops nodes that are silent for `seconds`."""

    def __init__(self, listener: socket.socket, token: bytes, coordinator: Coordinator, selector: selectors.BaseSelector, seconds: float):
        self._listener, self._token, self._coordinator, self._selector = listener, token, coordinator, selector
        self._seconds = seconds
        self._greetings: dict[Connection, Greeting] = {}
        self._nodes: dict[int, Connection] = {}
        self._hosts: dict[int, str] = {}
        self._warned = False
        listener.setblocking(False)
        selector.register(listener, selectors.EVENT_READ, self._accept)

    def send(self, node: int, message: dict) -> None:
        """Sends a message to a node; does nothing if the node is gone."""
        if node in self._nodes:
            self._nodes[node].send(message)
            self._watch(self._nodes[node])

    def tick(self) -> None:
        """Drop handshakes past their deadline and nodes past their longest silence; called periodically."""
        now = time.monotonic()
        for connection, greeting in list(self._greetings.items()):
            if now > greeting.deadline:
                self._drop(connection)
        for node, connection in list(self._nodes.items()):
            if now > connection.last_received + self._seconds:
                self._lose(node, f"was silent for {self._seconds:g} s")

    def alive(self) -> None:
        """Send every node a sign of life."""
        for node in list(self._nodes):
            self.send(node, {"do": "alive"})

    def flush(self, seconds: float) -> None:
        """Send pending messages, for at most `seconds`, and close all connections."""
        deadline = time.monotonic() + seconds
        while any(each.wants_to_write for each in self._nodes.values()) and time.monotonic() < deadline:
            for each in self._nodes.values():
                each.flush()
            time.sleep(0.01)
        for connection in (*self._nodes.values(), *self._greetings):
            connection.close()
        self._listener.close()

    def _watch(self, connection: Connection) -> None:
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.wants_to_write else 0)
        key = self._selector.get_key(connection.socket)
        if key.events != events:
            self._selector.modify(connection.socket, events, key.data)

    def _accept(self, _events: int) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return
        if len(self._greetings) >= _MOST_GREETINGS:
            self._drop(next(iter(self._greetings)))
        connection = Connection(sock)
        self._greetings[connection] = Greeting(connection, self._token)
        self._selector.register(sock, selectors.EVENT_READ, lambda _events: self._greet(connection))

    def _drop(self, connection: Connection) -> None:
        self._greetings.pop(connection, None)
        self._selector.unregister(connection.socket)
        connection.close()

    def _greet(self, connection: Connection) -> None:
        greeting = self._greetings[connection]
        try:
            hello = greeting.receive()
        except LinkError:
            return self._drop(connection)
        except PermissionError:
            if not self._warned:
                self._warned = True
                print("tessera: warning: refused a launcher with a different job token", file=sys.stderr, flush=True)
            return self._drop(connection)
        if hello is None:
            return None
        node, count = hello.get("node"), hello.get("count")
        refusal = self._refusal(hello, node, count)
        if refusal:
            self._greetings.pop(connection)
            self._selector.unregister(connection.socket)
            greeting.refuse(refusal)
            return None
        greeting.accept()
        self._greetings.pop(connection)
        self._nodes[node], self._hosts[node] = connection, str(hello.get("host"))[:200]
        self._selector.modify(connection.socket, selectors.EVENT_READ, lambda events: self._receive(node, events))
        self._watch(connection)
        self._coordinator.join(node, count)
        return None

    def _refusal(self, hello: dict, node, count) -> str | None:
        """The reason to refuse a node; None if it is accepted."""
        nodes = self._coordinator.nodes
        if hello.get("nodes") != nodes:
            return f"it has --nnodes {hello.get('nodes')} and node 0 has --nnodes {nodes}; give all nodes the same"
        if not isinstance(node, int) or not isinstance(count, int) or not 0 < node < nodes or count < 1:
            return f"--node_rank {node} is not from 1 to {nodes - 1}"
        if node in self._coordinator.places:
            return f"--node_rank {node} is already taken by host {self._hosts.get(node)}; give each node its own"
        return None

    def _receive(self, node: int, events: int) -> None:
        connection = self._nodes[node]
        if events & selectors.EVENT_WRITE:
            connection.flush()
            self._watch(connection)
        if not events & selectors.EVENT_READ:
            return
        try:
            messages = connection.receive()
        except LinkError as error:
            return self._lose(node, f"ended unexpectedly ({error})")
        for message in messages:
            kind, coordinator = message.get("say"), self._coordinator
            if kind == "failed":
                coordinator.failed(node, message["failure"])
            elif kind == "stop":
                coordinator.stop(node, message["signal"])
            elif kind == "gone":
                coordinator.gone(node)
            elif kind == "done":
                coordinator.done(node)
        return None

    def _lose(self, node: int, why: str) -> None:
        connection = self._nodes.pop(node)
        self._selector.unregister(connection.socket)
        connection.close()
        self._coordinator.lost(node, f"the launcher of node {node} (host {self._hosts[node]}) {why}; all ranks end")
