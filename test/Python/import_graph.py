# RUN: %python %s
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules of the package import each other without cycles, at the top of their files.

The graph is derived from the syntax, including imports inside functions. Importing `a.b` also imports the package `a`,
except in modules of `a` itself.
"""

import ast
import pathlib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2] / "python" / "tessera"

# (module, its import inside a function): reason.
LAZY = {
    ("tessera.dtypes", "ml_dtypes"): "an optional package; without it bfloat16 is read as its bits",
    ("tessera.data", "tqdm"): "an optional package; without it there is no progress bar",
    ("tessera.import_jax", "tessera.jax"): "JAX reads XLA_FLAGS when it is imported; the command sets them first",
    **{("tessera.kvstore", f"tessera.kvstore.{name}"): "they need ZeroMQ, an optional package" for name in ("run", "worker")},
    **{("tessera.launch", f"tessera.launch.{name}"): "a command loads what its options ask for"
       for name in ("arguments", "emit", "mpi", "start")},
    **{("tessera.launch.emit", f"tessera.launch.emit.{name}"): "a command loads the kind of job it prints"
       for name in ("kubernetes", "roles", "slurm", "yaml")},
    ("tessera.ops", "tessera.strategy"): "ops.shard compiles, which needs the operations",
}

# From the bottom to the top (docs/python.md): a module imports those of lower layers, and of its own package.
LAYERS = ("errors sharding tree testing ir complexes special", "source constants ranks reader libraries", "dtypes mesh core context", "distributed layout runtime foreign",
          "tensor program", "resident", "executable", "trace arguments jax", "replicas", "record import_jax", "compiled eager", "strategy autodiff",
          "ops", "control random optim data", "nn", "picture", "parallel memory torch")


def modules():
    """Name -> (syntax, whether it is a package)."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = [ROOT.name, *path.relative_to(ROOT).with_suffix("").parts]
        package = parts[-1] == "__init__"
        found[".".join(parts[:-1] if package else parts)] = ast.parse(path.read_text(), str(path)), package
    return found


def imports(tree, name, package):
    """(line, imported module, its name there or None, whether it is in a function) of each import."""
    def visit(node, inside):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield child.lineno, alias.name, None, inside
            elif isinstance(child, ast.ImportFrom):
                base = child.module or ""
                if child.level:
                    around = name.split(".")[:None if package else -1]
                    base = ".".join([*around[:len(around) - child.level + 1], *([child.module] if child.module else [])])
                for alias in child.names:
                    yield child.lineno, base, alias.name, inside
            yield from visit(child, inside or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)))
    return visit(tree, False)


def graph(found):
    """Module -> the modules it imports; and errors of single imports, with file and line."""
    edges, wrong = {name: set() for name in found}, []
    for name, (tree, package) in found.items():
        for line, base, member, inside in imports(tree, name, package):
            target = f"{base}.{member}" if f"{base}.{member}" in found else base
            if inside and (name, target) not in LAZY:
                wrong.append(f"{name}:{line}: imports {target} inside of a function")
            if target == ROOT.name:
                wrong.append(f"{name}:{line}: imports '{member}' from the root, which imports the modules; name its module")
            if target not in found:
                continue
            parts = target.split(".")
            around = [".".join(parts[:i]) for i in range(1, len(parts) + 1)]
            edges[name] |= {a for a in around if a != name and not name.startswith(f"{a}.")}
    return edges, wrong


def circles(edges):
    """Strongly connected components of more than one module (Tarjan, 1972)."""
    numbers, low, stack, found = {}, {}, [], []

    def visit(v):
        numbers[v] = low[v] = len(numbers)
        stack.append(v)
        for w in sorted(edges[v]):
            if w not in numbers:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], numbers[w])
        if low[v] == numbers[v]:
            at = stack.index(v)
            component = sorted(stack[at:])
            del stack[at:]
            if len(component) > 1:
                found.append(component)

    for v in sorted(edges):
        if v not in numbers:
            visit(v)
    return found


class ImportGraph(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.modules = modules()
        cls.edges, cls.wrong = graph(cls.modules)

    def test_circles(self):
        """Finds a cycle in a graph that has one, and none in the package."""
        self.assertEqual(circles({"a": {"b"}, "b": {"c"}, "c": {"b"}}), [["b", "c"]])
        self.assertEqual(circles(self.edges), [])

    def test_places(self):
        """Imports are at the top; those inside functions are listed with a reason, and the list has no stale entries."""
        self.assertEqual(self.wrong, [])
        used = {(name, f"{base}.{member}" if f"{base}.{member}" in self.modules else base)
                for name, (tree, package) in self.modules.items() for _, base, member, inside in imports(tree, name, package) if inside}
        self.assertEqual(sorted(set(LAZY) - used), [])

    def test_layers(self):
        """Imports lead to lower layers. Modules without a layer are above all others."""
        layer = {name: i for i, names in enumerate(LAYERS) for name in names.split()}
        self.assertEqual([name for name in layer if f"{ROOT.name}.{name}" not in self.modules], [])
        wrong = []
        for name in sorted(set(self.edges) - {ROOT.name}):
            own = name.split(".")[1]
            for target in sorted(self.edges[name]):
                other = target.split(".")[1]
                if other != own and own in layer and layer.get(other, len(LAYERS)) >= layer[own]:
                    wrong.append(f"{name} imports {target}: '{other}' is not in a layer below '{own}'")
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
