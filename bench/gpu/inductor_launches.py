# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The launches of Inductor, torch.compile's compiler, for a training step of GPT-2 on an H100, determined without a GPU.

The graphs are traced with tensors without values on the CPU (autograd asks the driver otherwise), then lowered and scheduled with
such tensors on `cuda`. Nothing is generated or run. Attention is a custom operation, which Inductor calls like flash
attention: with one launch forward and one backward.
"""

import copy

import torch
import torch.nn.functional as F
from torch import nn


class _H100:
    name, major, minor, total_memory, multi_processor_count, warp_size = "NVIDIA H100", 9, 0, 80 << 30, 132, 32
    max_threads_per_multi_processor, max_threads_per_block, regs_per_multiprocessor, gcnArchName = 2048, 1024, 65536, ""
    shared_memory_per_block, shared_memory_per_block_optin, L2_cache_size = 49152, 232448, 50 << 20


def _define_attention(batch, tokens, width, heads):
    @torch.library.custom_op("tessera_model::attention", mutates_args=())
    def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        raise NotImplementedError

    def like(q):  # the layout of flash attention: tokens before heads
        return torch.empty_strided(q.shape, (tokens * width, width // heads, width, 1), dtype=q.dtype, device=q.device)

    @attention.register_fake
    def _(q, k, v):
        return like(q), torch.empty(batch, heads, tokens, dtype=torch.float32, device=q.device)

    @torch.library.custom_op("tessera_model::attention_backward", mutates_args=())
    def backward(g: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, o: torch.Tensor,
                 sums: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        raise NotImplementedError

    @backward.register_fake
    def _(g, q, k, v, o, sums):
        return like(q), like(q), like(q)

    attention.register_autograd(lambda ctx, g, _: backward(g, *ctx.saved_tensors),
                                setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs, *output))
    return attention


def _model(layers, sizes):
    batch, tokens, width, heads, words = sizes
    attention = _define_attention(batch, tokens, width, heads)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            q, k, v = [each.view(batch, tokens, heads, width // heads).transpose(1, 2) for each in self.qkv(self.norm1(x)).split(width, -1)]
            x = x + self.out(attention(q, k, v)[0].transpose(1, 2).reshape(batch, tokens, width))
            return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.place = nn.Embedding(words, width), nn.Parameter(torch.empty(tokens, width))
            self.blocks, self.norm = nn.ModuleList(Block() for _ in range(layers)), nn.LayerNorm(width)

        def forward(self, x, y):
            h = self.token(x) + self.place
            for block in self.blocks:
                h = block(h)
            return F.cross_entropy(F.linear(self.norm(h), self.token.weight).view(-1, words).float(), y.view(-1))
    return GPT()


def _schedule(module, inputs):
    """The nodes of Inductor's scheduler for a graph, with the graph: a node is a launch, or a library call."""
    from torch._inductor.compile_fx import _recursive_post_grad_passes
    from torch._inductor.debug import DebugContext
    from torch._inductor.graph import GraphLowering
    from torch._inductor.virtualized import V
    from torch.fx.passes.fake_tensor_prop import FakeTensorProp
    for node in module.graph.nodes:
        if "device" in node.kwargs:
            node.kwargs = {**node.kwargs, "device": torch.device("cuda:0")}
    mode = inputs[0].fake_mode
    inputs = [torch.empty_strided(each.shape, each.stride(), dtype=each.dtype, device="cuda:0") for each in inputs]
    FakeTensorProp(module, mode).propagate_dont_convert_inputs(*inputs)
    with V.set_fake_mode(mode):
        _recursive_post_grad_passes(module, is_inference=False)
    graph = GraphLowering(module, example_inputs=inputs, shape_env=None)
    with V.set_graph_handler(graph), V.set_fake_mode(mode), V.set_debug_handler(DebugContext()):
        graph.run(*inputs)
        graph._update_scheduler()
    return graph, list(graph.scheduler.nodes)


def _looked_up(node):
    """Bytes counted by the scheduler for tables of which only some rows are read."""
    from torch._inductor.dependencies import MemoryDep
    from torch._inductor.virtualized import V
    extra, seen = 0, set()
    for part in node.get_nodes():
        if part.node is None:
            continue
        for read in part.read_writes.reads:
            if not isinstance(read, MemoryDep) or not read.is_indirect() or read.name in seen:
                continue
            seen.add(read.name)
            buffer = V.graph.try_get_buffer(read.name)
            size = buffer.get_dtype().itemsize
            table = size * int(buffer.get_numel())
            extra += max(table - size * max(int(write.get_numel()) for write in part.read_writes.writes), 0)
    return extra


def _operations(node):
    """The operations of PyTorch that a kernel computes, in the order of the graph."""
    origins = {origin for part in node.get_nodes() if part.node is not None for origin in part.node.get_origins()}
    order = {each: number for number, each in enumerate(next(iter(origins)).graph.nodes)} if origins else {}
    names = [str(getattr(each.target, "overloadpacket", each.target)).split(".")[-1] for each in sorted(origins, key=order.get)]
    return " ".join(dict.fromkeys(names))


def _launches(graph, nodes, sizes):
    from torch._inductor.virtualized import V
    batch, tokens, width, _, _ = sizes
    causal = 2 * batch * tokens * tokens * width // 2  # flops of one product of an attention
    with V.set_graph_handler(graph):
        for node in nodes:
            name = type(node).__name__
            if "Nop" in name or getattr(node.node, "python_kernel_name", None) is None and type(node.node).__name__ == "MultiOutput":
                continue
            bytes = int(node.get_read_write_buffers_sizes())
            if not name.startswith("Extern"):
                yield 1, _operations(node), bytes - _looked_up(node), 0
                continue
            called = str(getattr(node.node, "op_overload", None) or getattr(node.node, "python_kernel_name", ""))
            flops = causal * 5 if "attention_backward" in called else causal * 2 if "attention" in called else node.estimate_flops()
            yield 1, called, bytes, int(flops or 0)


def launches(layers, kind, sizes):
    """(times, name, bytes, flops) of each launch: forward, backward, AdamW."""
    from torch._functorch.aot_autograd import aot_function
    from torch._functorch.partitioners import min_cut_rematerialization_partition
    from torch._inductor.decomposition import select_decomp_table
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch._dynamo.device_interface import CudaInterface
    CudaInterface.get_device_properties = CudaInterface.Worker.get_device_properties = staticmethod(lambda *_, **__: _H100)
    torch.cuda.get_device_properties = lambda *_, **__: _H100
    torch.cuda.get_device_capability = lambda *_, **__: (9, 0)
    torch.cuda.current_device = lambda: 0
    found = []

    def compiler(module, inputs):
        before = torch.cuda.is_available, torch.cuda.device_count
        torch.cuda.is_available, torch.cuda.device_count = lambda: True, lambda: 1
        try:
            found.append(_schedule(copy.deepcopy(module), inputs))
        finally:
            torch.cuda.is_available, torch.cuda.device_count = before
        return module

    with FakeTensorMode(allow_non_fake_inputs=True):
        model = _model(layers, sizes)
        x = torch.zeros(sizes[0], sizes[1], dtype=torch.long)
        parameters = dict(model.named_parameters())

        def loss(parameters, x, y):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=kind == "bf16"):
                return torch.func.functional_call(model, parameters, (x, y))

        aot_function(loss, fw_compiler=compiler, bw_compiler=compiler, partition_fn=min_cut_rematerialization_partition,
                     decompositions=select_decomp_table())(parameters, x, x).backward()
    for part, (graph, nodes) in zip(("forward", "backward"), found, strict=True):
        yield from ((times, f"{part}: {name}", *rest) for times, name, *rest in _launches(graph, nodes, sizes))
    yield 1, "optimizer: AdamW", 7 * 4 * sum(each.numel() for each in parameters.values()), 0
