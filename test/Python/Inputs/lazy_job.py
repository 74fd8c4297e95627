"""A model of 16 matrices of 8 MiB cut over all ranks of a job: prints the MiB of one step on this rank in excess of those of a small model."""

import sys

import numpy as np

import tessera as ts
from tessera import ProcessMesh, Replicate, Shard, nn, optim, ranks

FEATURES, LAYERS = 1448, 16


def status(name):
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name)) / 1024


me, mesh = ranks.read(), ProcessMesh(range(ranks.read().size), ["tp"])


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.layers = [nn.Linear(features, features, bias=False) for _ in range(LAYERS)]

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x) if i % 2 == 0 else nn.relu(layer(x))
        return x


@ts.jit(donate=True, backend=sys.argv[1])
def train(model, x):
    value, gradients = ts.value_and_grad(lambda model, x: nn.mse_loss(model(x), x))(model, x)
    return optim.SGD(0.1).update(model, gradients, {"count": ts.asarray(0, "int32")})[0], value


def steps(model, features, count):
    x = np.ones((2, features), np.float32)
    for _ in range(count):
        model, value = train(model, ts.shard_tensor(x, mesh, [Replicate()]))
        value = value.item()
    return value


def run(features, lazy):
    nn.init.seed(0)
    with nn.LazyGuard() if lazy else nn.eval_mode(nn.Module()):
        model = Model(features)
    model = optim.shard_parameters(model, mesh, lambda name, p: [Shard(1 - int(name.split(".")[1]) % 2)])
    return steps(model.initialize() if lazy else model, features, 2)


run(8, False)  # excludes the memory of compilation
before = status("VmRSS")
with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
    file.write("5")  # resets the peak
value = run(FEATURES, sys.argv[2] == "lazy")
print(f"{value:.9g} {status('VmHWM') - before:.0f} of {LAYERS * FEATURES * FEATURES * 4 / 2**20:.0f} MiB")
