//===- Passes.td - From one device to many ------------------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRANSFORMS_PASSES
#define TESSERA_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

class Dist_Pass<string name> : Pass<name, "::mlir::ModuleOp"> {
  let dependentDialects = ["::tessera::dist::DistDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect", "::mlir::scf::SCFDialect"];
}

def DistGuard : Dist_Pass<"dist-guard"> {
  let summary = "Stop at what the pipeline cannot take";
  let description = [{
    Refuses, with one located error each: ops of other dialects and unregistered ones, dynamic shapes, unstructured
    control flow, element types without a kernel, ops with side effects. What passes here passes every later pass.
  }];
}

def DistNormalize : Dist_Pass<"dist-normalize"> {
  let summary = "Bring a program to the form that the other passes read";
  let description = [{
    Inlines calls (what a called function declares becomes `dist.shard_tensor`), writes elementwise ops on tensors
    as `linalg.generic`, decomposes aggregates such as `linalg.softmax`, reads extended 16-bit floats as they were where
    a contraction multiplies them with others of their type, moves what does not depend on the iteration in
    front of its loop, composes moves along one dimension to one `dist.rearrange`, reads look-ups at affine indices by a
    map, splits dimensions that a reshape has merged while ops run over them, gives every use of a cheap constant its own
    copy, rewrites shardings to canonical spelling with non-negative dimensions, and checks that operands that meet lie on
    one mesh.
  }];
}

def DistRecognizeAttention : Dist_Pass<"dist-recognize-attention"> {
  let summary = "Write products and softmax as one op where a program attends";
  let description = [{
    Where a product sums over the keys of a softmax of another product, both become an `ext.attention`, with everything
    elementwise between them (scale, bias, mask, soft cap) as its region. Programs are compared by the formula of an
    element, so that it does not matter where scales stand, whether masks are selected, added or multiplied, which
    dimension the heads are, what is transposed, reshaped or broadcast on the way, or whether the softmax is divided
    before or behind the product. Masks made of indices become code; heads that share keys and values by a broadcast
    read them as they are. Where something else reads the scores, or the user constrained them, nothing changes.
  }];
  let dependentDialects = ["::tessera::dist::DistDialect", "::tessera::ext::ExtDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect",
                           "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def DistPropagate : Dist_Pass<"dist-propagate"> {
  let summary = "Give every value a sharding";
  let description = [{
    Carries the axes that the user wrote from tensor to tensor along the factors of each op, in rounds of user priority, first
    through what only moves elements, then through everything; then decides for each op how its
    loops are cut: where tensors contest an axis, by the least modelled time of the ops concerned and of the reshards between
    them, on the machine of `topology`, then by order in the program. The result is `dist.shardings` on every op and `dist.sharding` on every argument and result.
  }];
  let options = [
    Option<"topology", "topology", "std::string", "\"\"", "Topology file (JSON); default an 8-GPU NVLink node">,
  ];
}

def DistPrintRules : Dist_Pass<"dist-print-rules"> {
  let summary = "Print the sharding rule of each op as a remark";
  let description = [{
    One remark for each op with tensors: the factors (loops) of every dimension of its operands and results, which of them
    must be whole or are reduced, and from which sets of operands it forwards contributions to a sum. For tests of rules, and
    to see why an op is not cut. Changes nothing.

    ```
    ([i, k], [k, j], [i, j]) -> ([i, j]) {i = 8, j = 16, k = 4} sum over k, operand 2 accumulates; forwards sums from {0, 2} {1, 2}
    ```
  }];
}

def DistSearch : Dist_Pass<"dist-search"> {
  let summary = "Choose every sharding by its modelled time";
  let description = [{
    Takes the place of `dist-propagate`: no annotation is needed, and what is annotated holds. Every op becomes a node whose strategies are
    the ways to cut it, every tensor an edge with the times of the reshards between what one op leaves and another needs (chains of
    collectives without permutations and exchanges) on the machine's topology; the choice of least total time is found by `mode` (docs/search.md) and written as `dist-propagate` writes its own.
    It is never slower, by the model, than what propagation alone decides; with `minimise=memory` it keeps no more at its peak. A module without a mesh gets one of `devices` devices, of the
    shape that serves it best. `dist.search` on the module has the cost, the proved lower bound and the memory.
  }];
  let options = [
    Option<"mode", "mode", "std::string", "\"dynamic_programming\"",
           "sharding_propagation, dynamic_programming, recursive_programming or exact">,
    Option<"memoryBudget", "memory-budget", "double", "0", "GiB a device; 0: no budget">,
    Option<"takeLeast", "take-least", "bool", "false",
           "Where no plan is within the budget, take the one of least memory in place of an error">,
    Option<"minimise", "minimise", "std::string", "\"time\"",
           "What a plan has the least of: time, or memory at the peak of a device">,
    Option<"fullyUseDevices", "fully-use-devices", "bool", "true",
           "Contractions use every device where their sizes allow">,
    Option<"devices", "devices", "int64_t", "0", "Devices for a module without a mesh; 0: it stays without">,
    Option<"topology", "topology", "std::string", "\"\"", "Topology file (JSON); default an 8-GPU NVLink node">,
    Option<"timeLimit", "time-limit", "double", "10", "Seconds; then the best plan so far is taken">,
    Option<"solver", "solver", "std::string", "\"\"", "Library of HiGHS or program cbc for mode exact; default looked for">,
  ];
}

def DistSinkPartials : Dist_Pass<"dist-sink-partials"> {
  let summary = "Let reductions wait where that sends fewer bytes";
  let description = [{
    Contributions pass through every op that is linear in them and through what only moves elements. For each mesh axis a minimum cut over the
    values finds where reducing them sends the fewest bytes: partial sums of branches are added before one reduction, a gradient is
    reduced when it has become small. Of equal cuts the earliest is taken. It runs before `dist-insert-reshards`, which then
    reduces what is partial where a use needs it whole; it changes `dist.shardings` alone.
  }];
}

def DistInsertReshards : Dist_Pass<"dist-insert-reshards"> {
  let summary = "Put a dist.reshard, with its reason, where a use needs another sharding";
  let description = [{
    One for several uses that need the same; a partial value is reduced once, straight to what its uses need where they agree.
    `dist.shard_tensor` disappears: what it demanded is a reshard or already so.
  }];
}

def DistWidenPartials : Dist_Pass<"dist-widen-partials"> {
  let summary = "Keep contributions of 16-bit floats in f32 until they are reduced";
  let description = [{
    What leads from a reduction that is cut to the `dist.reshard` that adds up its contributions is computed in f32, reduced in f32 and
    rounded once, as one device does. So a reduction of bf16 or f16 sends four bytes an element. What others read (a result
    annotated partial, the carry of a loop) stays as it is.
  }];
}

def DistPlanReshards : Dist_Pass<"dist-plan-reshards"> {
  let summary = "Write each dist.reshard as the chain of moves that costs least";
  let description = [{
    Every `dist.reshard` within one mesh becomes a chain of them, each with one move in `dist.move` (slice, all_gather, reduce_scatter,
    all_reduce, all_to_all, permute or exchange), by the shortest path over placements under the cost model. Reshards to windows (halos) are left
    to `dist-partition`, which sees what pads them. With `remarks` each says the chain, its cost, the runner-up (the
    cheapest chain without the dearest move of the chosen one) and the bytes that any plan must receive.
  }];
  let options = [
    Option<"objective", "objective", "std::string", "\"time\"", "What a plan minimises: time or bytes">,
    Option<"topology", "topology", "std::string", "\"\"", "Topology file (JSON); default an 8-GPU NVLink node">,
    Option<"remarks", "remarks", "bool", "false", "Emit a remark for every chain that communicates">,
  ];
}

def DistPartition : Dist_Pass<"dist-partition"> {
  let summary = "Global shapes to local shapes, reshards to collectives";
  let description = [{
    Writes one function of the local view per distinct set of devices. Uneven edges of reductions are masked, windows get their
    halo, indices become global again where a body reads them.
  }];
  let options = [
    Option<"objective", "objective", "std::string", "\"time\"",
           "What the plan of a reshard that has none minimises: time or bytes">,
    Option<"topology", "topology", "std::string", "\"\"", "Topology file (JSON); default an 8-GPU NVLink node">,
    Option<"remarks", "remarks", "bool", "false",
           "Emit a remark for every chain of collectives: its bytes, its modelled time, why it is there">,
  ];
}

def DistFuseCollectives : Dist_Pass<"dist-fuse-collectives"> {
  let summary = "Join collectives of one kind, group, reduction and element type";
  let description = [{
    `auto` joins up to 64 MiB; `bucket` as little as takes four times its latency by the model, from 1 to 25 MiB; `size` up
    to `config` MiB (a larger tensor stays alone); `ready`, all-reduce only, the same
    in the order in which operands are computed, each bucket where the last of its operands is (0: joins nothing), so that
    gradients are reduced while the backward pass goes on; `index`, all-reduce only, cuts the
    all-reduces of a function in their order at the indices of `config`: [20, 35] joins 0..19, 20..34 and the rest; none is
    `auto`, those beyond the last all-reduce are named in a remark. `off` joins nothing.

    A joined collective keeps the operands of its first members until the last one is there, and makes the results of its
    last members early. With `memory-budget`, nothing is joined whose memory would exceed the budget.
  }];
  let options = [
    Option<"memoryBudget", "memory-budget", "double", "0", "GiB per device; 0: no budget">,
    Option<"topology", "topology", "std::string", "\"\"", "Topology file (JSON); default an 8-GPU NVLink node">,
    Option<"allReduce", "all-reduce", "std::string", "\"auto\"", "Mode for all-reduce: off, auto, bucket, size, ready or index">,
    Option<"allGather", "all-gather", "std::string", "\"auto\"", "Mode for all-gather: off, auto, bucket or size">,
    Option<"reduceScatter", "reduce-scatter", "std::string", "\"auto\"", "Mode for reduce-scatter: off, auto, bucket or size">,
    ListOption<"config", "config", "int64_t", "MiB for size and ready (one number), or ascending indices for index, of the one kind that has this mode">,
    ListOption<"allReduceConfig", "all-reduce-config", "int64_t", "The same for all-reduce alone">,
    ListOption<"allGatherConfig", "all-gather-config", "int64_t", "The same for all-gather alone">,
    ListOption<"reduceScatterConfig", "reduce-scatter-config", "int64_t", "The same for reduce-scatter alone">,
  ];
}

def DistOverlapCollectives : Dist_Pass<"dist-overlap-collectives"> {
  let summary = "Compute while collectives are under way";
  let description = [{
    Schedules each block of a function of the local view on one queue that computes and one for each group of mesh axes,
    by modelled times. A collective is started where its operands are there (one that grows, as an all-gather does: late
    enough to end just before it is read) and waited for in front of its first reader; ops that do not need it run in
    between. Without `memory-budget`, overlap adds at most a tenth to the memory of a device.
  }];
  let options = [
    Option<"memoryBudget", "memory-budget", "double", "0", "GiB per device; 0: no budget">,
    Option<"topology", "topology", "std::string", "\"\"", "Topology file (JSON); default an 8-GPU NVLink node">,
  ];
}

def DistPrefetchLoops : Dist_Pass<"dist-prefetch-loops"> {
  let summary = "Communicate beside another iteration of a loop";
  let description = [{
    Software pipelining of innermost loops of the local view whose trip count is known. Collectives that read nothing of
    earlier iterations, as gathers of a layer's weights do, run one iteration ahead; collectives whose results only go
    into what the loop collects, as sums of a layer's gradients do, end one iteration later. The loop then runs two
    iterations in one, so that nothing is copied at the back edge, and its first and last iterations are written out.
    Each op runs as often as before, with the same operands; `dist-overlap-collectives` then finds products for the
    collectives to hide behind. A device keeps the gathered weights, and the unreduced gradients, of two iterations: as
    many of them as fit, those first that are read first. Without `memory-budget` that is a tenth of the memory of a
    device.
  }];
  let options = [
    Option<"memoryBudget", "memory-budget", "double", "0", "GiB per device; 0: no budget">,
    Option<"topology", "topology", "std::string", "\"\"", "Topology file (JSON); default an 8-GPU NVLink node">,
  ];
}

def DistDecomposeProducts : Dist_Pass<"dist-decompose-products"> {
  let summary = "Communicate a product part by part";
  let description = [{
    Cuts a product and the all-gather of one of its operands, or the reduce-scatter of its result, into 2, 4 or 8 parts
    along another loop of the product, where the model says that sending a part while another one is multiplied saves
    time. Every element is added up in the order in which it was; `dist-overlap-collectives` starts and awaits the parts.
  }];
  let options = [
    Option<"topology", "topology", "std::string", "\"\"", "Topology file (JSON); default an 8-GPU NVLink node">,
  ];
}

def DistLimitMemory : Dist_Pass<"dist-limit-memory"> {
  let summary = "Send again what would take memory meanwhile";
  let description = [{
    Where a function of the local view keeps more than `memory-budget` at one time, what grows by being sent is sent just before it
    is needed, and of what then lies idle at the worst time between two of its uses (a weight that is gathered in the
    forward pass and read again in the backward pass) the values that free most bytes for a second of sending are
    sent again, until everything fits or nothing is left to send again.
  }];
  let options = [
    Option<"memoryBudget", "memory-budget", "double", "0", "GiB a device; 0: no budget">,
    Option<"topology", "topology", "std::string", "\"\"", "Topology file (JSON); default an 8-GPU NVLink node">,
  ];
}

def DistCanonicalizeCollectives : Dist_Pass<"dist-canonicalize-collectives"> {
  let summary = "Fewer collectives by local rewrites";
  let description = [{
    A slice after an all-reduce over the same axes makes a reduce-scatter; equal collectives of one value are merged; what
    nobody uses goes.
  }];
}

#endif // TESSERA_TRANSFORMS_PASSES
