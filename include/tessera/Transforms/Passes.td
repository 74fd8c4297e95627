//===- Passes.td - From one device to many -----------------*- tablegen -*-===//
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
  let summary = "Reject programs that the pipeline does not support";
  let description = [{
    Emits one located error for each unsupported construct: unregistered ops and ops of other dialects, dynamic shapes,
    unstructured control flow, element types without a kernel, ops with side effects. A program that passes is supported by
    every later pass.
  }];
  let options = [
    Option<"resharded", "resharded", "bool", "false",
           "The program is in phase `resharded` or a later one: reshards may make windows">,
  ];
}

def DistNormalize : Dist_Pass<"dist-normalize"> {
  let summary = "Rewrite a program to the form that the other passes expect";
  let description = [{
    Inlines calls (annotations of the callee become `dist.shard_tensor`), takes branches whose condition is known,
    writes elementwise ops on tensors as `linalg.generic`, decomposes aggregates such as `linalg.softmax`, lets
    contractions read 16-bit operands without the extension that makes their types equal, writes products with one-hot
    operands and reads and writes at computed indices as [nests that select](../local-view.md#indexed-operations), hoists
    loop invariants, composes moves along one dimension into one `dist.rearrange`, replaces look-ups at affine indices by
    indexing maps, splits dimensions that a reshape has merged, copies cheap constants for each use, rewrites shardings in
    canonical form with non-negative dimensions, and verifies that the operands of an op are on one mesh. A program
    for one device, without a mesh and without `devices`, keeps its moves, dimensions, look-ups, `tensor.gather` and
    `tensor.scatter`.
  }];
  let options = [
    Option<"devices", "devices", "int64_t", "0",
           "Devices of the mesh that dist-search will declare for a module without one; 0: none">,
  ];
}

def DistRecognizeAttention : Dist_Pass<"dist-recognize-attention"> {
  let summary = "Raise products and softmax to ext.attention";
  let description = [{
    Replaces a product, a softmax over its result and the product that sums over the keys by one `ext.attention`. The
    elementwise ops between them (scale, bias, mask, soft cap) become its region, those between softmax and second product
    (dropout) its region of weights. The pass compares formulas of elements,
    so it accepts any position of the scale, masks that are selected, added or multiplied, any dimension for the heads,
    transposes, reshapes and broadcasts in between, and a softmax that is normalized before or after the second product.
    Masks computed from indices become code; heads that share keys and values through a broadcast read the shared
    operands. Scores with other users or with an annotation are left alone. An attention whose queries see keys of their
    own chunk of positions only is one over the chunks as batches, if the devices of each mesh divide their number.
  }];
  let dependentDialects = ["::tessera::dist::DistDialect", "::tessera::ext::ExtDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect",
                           "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def DistFactorSums : Dist_Pass<"dist-factor-sums"> {
  let summary = "Compute sums that differ by an invariant factor once";
  let description = [{
    If several sums of f32 or f64 add up the same product except for factors that do not depend on the summed loops, the
    product is summed once and the other factors multiply the result. The derivatives of batch norms with respect to their
    input, scale and offset are such sums. If propagation cuts a summed loop, the sum is reduced once. A sum of deviations
    from their own mean is replaced by zero. Sums are regrouped, so results differ by rounding. Annotated sums do not change.
  }];
  let options = [
    Option<"devices", "devices", "int64_t", "0",
           "Devices of the mesh that dist-search will declare; without a mesh and 0 nothing is changed">,
  ];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect",
                           "::mlir::arith::ArithDialect"];
}

def DistCutScans : Dist_Pass<"dist-cut-scans"> {
  let summary = "Compute loops along cut dimensions in a block of iterations for each device";
  let description = [{
    A loop over a dimension that annotations cut over n devices is divided into n blocks of iterations, if what it carries
    is affine in itself, h' = a h + b element by element. Each block computes its last h from 0 and the product of its
    factors; the values in front of the blocks follow from these; then each block computes what the loop computes. The
    blocks are a dimension of the tensors, which takes the cut. Contributions that are only added up are added up by
    block. The driver compiles programs with such loops with and without this pass. For normalized programs.

    ```mlir
    scf.for %i = 0 to 32 (%h) { %b = tensor.extract_slice %x[%i, 0] [1, 4] [1, 1] … }      // %x is cut over 4 devices
    scf.for %i = 0 to 8 (%h) { %b = tensor.extract_slice %y[0, %i, 0] [4, 1, 4] [1, 1, 1] … }  // twice; %y: 4x8x4
    ```
  }];
  let options = [
    Option<"gathersStates", "gathers-states", "bool", "false",
           "Whether all devices get what the blocks pass on, else propagation decides">,
  ];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect", "::mlir::scf::SCFDialect",
                           "::mlir::arith::ArithDialect"];
}

def DistBlockShifts : Dist_Pass<"dist-block-shifts"> {
  let summary = "Read shifts of a value from blocks with borders";
  let description = [{
    A value of which shifts along several dimensions are read, as by a stencil with corners, or shifts by several
    distances along one, is divided into the blocks that annotations cut. Each block gets a border from its neighbors,
    one dimension after the other, so that corners are sent with faces, and the widest border once. Shifts around the
    ends and those that fill with a constant become slices of blocks. The driver compiles programs with such values with
    and without this pass. For normalized programs.

    ```mlir
    %b = tensor.expand_shape %u [[0, 1]] output_shape [4, 16]     // %u: tensor<64xf32>, cut over 4 devices
    %l = dist.rearrange … dim = 0                                 // the last 2 elements of the block before each
    %h = tensor.concat dim(1) %l, %b
    %s = tensor.extract_slice %h[0, 1] [4, 16] [1, 1]             // of a roll by 1
    ```
  }];
  let dependentDialects = ["::mlir::tensor::TensorDialect", "::mlir::arith::ArithDialect"];
}

def DistLiftRows : Dist_Pass<"dist-lift-rows"> {
  let summary = "Compute what follows from one row of a rotating state with all rows";
  let description = [{
    A pipeline written as a rotating state stores what its last stage computes, or feeds it to the first stage again. Ops
    on one row of such a state get a leading loop over all of its rows, across iterations, up to where the row is put
    back into a row, or leaves the loop. Where stages are cut, each device then stores its own rows, and only the row
    that is put back moves. Moves at the end of an iteration and at the beginning of the next become one. The driver
    compiles programs with such loops with and without this pass. For normalized programs.

    ```mlir
    %l = tensor.extract_slice %y[3, 0] [1, 4] [1, 1]                 // %y: 4x4, of 4 stages
    %o = tensor.insert_slice %l into %stored[%i, 0] [1, 4] [1, 1]    // tensor<6x4xf32>
    ```
    becomes an insertion of `%y` into `tensor<4x6x4xf32>`, of which row 3 is sliced after the loop.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect", "::mlir::scf::SCFDialect",
                           "::mlir::arith::ArithDialect"];
}

def DistRingAttention : Dist_Pass<"dist-ring-attention"> {
  let summary = "Allow keys and values to be cut like the queries (ring attention)";
  let description = [{
    Marks each `ext.attention` and `ext.attention_backward` with several queries with `ring`. Propagation and search then
    price the cut of its sequence as a ring: keys and values are cut over the axes that cut the queries, and a device
    attends to the block of one device in each turn. It receives as many bytes as in gathering keys and values, but no
    device holds all of them, and with `--overlap` a block is sent while another is computed. Blocks that a mask of indices hides
    from all devices are not sent. Attentions with a window of keys exchange halos and are not marked. The loop over queries
    is the one with as many positions as there are keys, otherwise the longest. Attentions with the same loops, and their
    derivatives, are of one kind; kinds are numbered from 0 in program order.
  }];
  let options = [
    ListOption<"kinds", "kinds", "int64_t", "Kinds of attentions to mark; default all">,
    Option<"remarks", "remarks", "bool", "false", "Emit a remark for each attention that cannot be a ring">,
  ];
  let dependentDialects = ["::tessera::dist::DistDialect", "::tessera::ext::ExtDialect"];
}

def DistBalanceRings : Dist_Pass<"dist-balance-rings"> {
  let summary = "Balance rings of causal attention";
  let description = [{
    With a causal mask, the queries of the last device of a ring see all blocks of keys and those of the first device only
    their own, but every device computes all blocks. The pass marks an `ext.attention` or `ext.attention_backward` with
    `ring`, a causal mask and as many queries as keys with `balanced` if that reduces the modelled time on the machine of
    `topology`: of 2n chunks of the sequence, device i of n then computes chunks i and 2n - 1 - i, which halves the
    computation. Operands and results along the sequence are exchanged before and after. Values keep their shardings.
  }];
  let options = [
    Option<"topology", "topology", "std::string", "\"\"", "Topology file (JSON); default an 8-GPU NVLink node">,
    Option<"remarks", "remarks", "bool", "false", "Emit a remark for each causal ring with both times">,
  ];
  let dependentDialects = ["::tessera::dist::DistDialect", "::tessera::ext::ExtDialect"];
}

def DistMarkFusedAttention : Dist_Pass<"dist-mark-fused-attention"> {
  let summary = "Keep attention as one op for GPUs";
  let description = [{
    Marks every `ext.attention` and `ext.attention_backward` that GPU kernels support with `ext.fused`: `dist-partition`
    then leaves the part of a device whole where keys are not cut. Not for CPUs, which have no kernel for the whole op.
  }];
  let dependentDialects = ["::tessera::ext::ExtDialect"];
}

def DistPropagate : Dist_Pass<"dist-propagate"> {
  let summary = "Propagate shardings to every value";
  let description = [{
    Spreads the annotated axes from tensor to tensor along the factors of each op, in rounds of user priority, first
    through ops that only move elements, then through all ops. Then decides how the loops of each op are cut. Where
    tensors contest an axis, the pass minimizes the modelled time of the ops concerned and of the reshards between them on
    the machine of `topology`; ties go to the earlier op. With the objective `bytes`, candidates are not left out because
    they take more messages. Writes `dist.op_sharding` and `dist.shardings` on every op and
    `dist.sharding` on every argument and result.
  }];
  let options = [
    Option<"objective", "objective", "std::string", "\"time\"", "Objective: time or bytes">,
    Option<"topology", "topology", "std::string", "\"\"", "Topology file (JSON); default an 8-GPU NVLink node">,
    Option<"recuts", "recuts", "bool", "true", "Try cuts that no tensor of an op has, where the plan sends much">,
    Option<"latencies", "latencies", "bool", "false", "Count the latencies of reshards, as if none were joined">,
    Option<"markRecuts", "mark-recuts", "bool", "false", "Mark the module by dist.recut if an op has such a cut">,
  ];
}

def DistPrintRules : Dist_Pass<"dist-print-rules"> {
  let summary = "Print the sharding rule of each op as a remark";
  let description = [{
    Emits one remark for each op with tensors: the factors (loops) of every dimension of its operands and results, which
    factors must stay whole or are reduced, and the sets of operands from which the op forwards partial sums. For tests of
    rules, and to find out why an op is not cut. Does not change the program.

    ```
    ([i, k], [k, j], [i, j]) -> ([i, j]) {i = 8, j = 16, k = 4} sum over k, operand 2 accumulates; forwards sums from {0, 2} {1, 2}
    ```
  }];
}

def DistSearch : Dist_Pass<"dist-search"> {
  let summary = "Choose all shardings by modelled time";
  let description = [{
    Replaces `dist-propagate`. Annotations are optional, and the plan honors them. Every op becomes a node whose
    strategies are the ways to cut it, every tensor an edge whose table has the times of the reshards between producer and
    users on the machine's topology (chains of collectives without permutations and exchanges). `mode` selects the solver
    that minimizes the total time (docs/search.md). By the model, the plan is never slower than that of propagation; with
    `minimise=memory` its peak is never higher. For a module without a mesh, the pass creates one of `devices` devices and
    selects its shape. `dist.search` on the module has the cost, the proved lower bound and the memory estimate.
  }];
  let options = [
    Option<"mode", "mode", "std::string", "\"dynamic_programming\"",
           "sharding_propagation, dynamic_programming, recursive_programming or exact">,
    Option<"memoryBudget", "memory-budget", "double", "0", "GiB per device; 0: no budget">,
    Option<"takeLeast", "take-least", "bool", "false",
           "If no plan fits the budget, use the plan with the smallest peak memory instead of failing">,
    Option<"minimise", "minimise", "std::string", "\"time\"",
           "Objective: time, or peak memory of a device">,
    Option<"fullyUseDevices", "fully-use-devices", "bool", "true",
           "Contractions use every device where their sizes allow">,
    Option<"devices", "devices", "int64_t", "0", "Devices of the mesh created for a module without one; 0: create none">,
    Option<"topology", "topology", "std::string", "\"\"", "Topology file (JSON); default an 8-GPU NVLink node">,
    Option<"timeLimit", "time-limit", "double", "10", "Seconds until the search stops with the best plan so far">,
    Option<"solver", "solver", "std::string", "\"\"", "HiGHS library or cbc program for mode exact; default: search the system">,
  ];
}

def DistSinkPartials : Dist_Pass<"dist-sink-partials"> {
  let summary = "Delay reductions of partial values where that sends fewer bytes";
  let description = [{
    Partial values pass through every op that is linear in them. For each mesh axis, a minimum cut over the values finds
    where reducing them sends the fewest bytes: the partial sums of several branches are added before one reduction, and a
    gradient is reduced where it is smallest. Ties go to the earliest cut. A second cut shards ops after a reduction over
    its axis if that sends less than an all-reduce: partial values are reduce-scattered, and the results of these ops are
    gathered if they are narrower, or not at all if no user needs them whole. The pass changes only `dist.op_sharding` and
    `dist.shardings`; `dist-insert-reshards` then reduces partial values for users that need them whole.
    A loop accumulator that starts from zero is reduced after the loop even if it is sharded over the axis, which takes
    the memory of a whole value, unless `keep-cuts` is set.
    With `divide-updates`, the second cut also counts the time of the ops at the end of a step that every device would
    compute whole: an optimizer's update is cut over the axis if that saves more than the latencies of a reduce-scatter and
    a gather. Moments and other state that only such ops read, and that has no annotation, is then kept in parts: the
    argument and the result that feeds it are cut.
  }];
  let options = [
    Option<"keepCuts", "keep-cuts", "bool", "false",
           "Keep the accumulators of loops sharded and reduce them in every iteration; set under a memory budget">,
    Option<"divideUpdates", "divide-updates", "bool", "true",
           "Divide ops at the end of a step among the devices whose contributions they need, and the state that only they read">,
    Option<"objective", "objective", "std::string", "\"time\"", "Objective: time or bytes">,
    Option<"topology", "topology", "std::string", "\"\"", "Topology file (JSON); default an 8-GPU NVLink node">,
  ];
}

def DistSinkSlices : Dist_Pass<"dist-sink-slices"> {
  let summary = "Slice a cut dimension after the loop that stacks its slices";
  let description = [{
    A loop that stacks slices of a cut dimension sends a slice in each iteration. For example, a pipeline written as a
    rotating buffer stacks the results of its last stage. If that takes no more memory, each device instead stacks its own
    block; the used part is sliced from the stack after the loop and sent once. The dimension must be the first one of a
    value that the pass can divide into equal blocks, the slice must be within one block, and no other op in the loop may
    read the slice or the stack.

    What all devices would compute from a slice within one block is computed by each device from its own block, where that
    sends fewer bytes: of the results of a last stage the loss, which the stage computes.
  }];
}

def DistInsertReshards : Dist_Pass<"dist-insert-reshards"> {
  let summary = "Insert a dist.reshard, with its reason, where a use needs another sharding";
  let description = [{
    Uses that need the same sharding share a reshard. A partial value is reduced once, directly to the sharding of its uses
    where they agree. `dist.shard_tensor` is replaced by a reshard, or by its operand if that has the sharding already.
  }];
}

def DistNarrowPartials : Dist_Pass<"dist-narrow-partials"> {
  let summary = "Treat roundings to 16-bit floats as linear in partial sums";
  let description = [{
    Marks ops that round element by element to bf16 or f16, so that partial values pass through them and are reduced in
    16 bits: half the bytes of a bf16 gradient whose product accumulates in f32. The sum then differs from that of one
    device by a rounding per device. With `--narrow-reductions` it runs before propagation and replaces
    `dist-widen-partials`; else with `accumulated`.
  }];
  let options = [
    Option<"accumulated", "accumulated", "bool", "false",
           "Only roundings of what a loop adds up in more bits: gradients of micro-batches, which are reduced once, behind "
           "the loop">,
  ];
}

def DistWidenPartials : Dist_Pass<"dist-widen-partials"> {
  let summary = "Keep contributions of 16-bit floats in f32 until they are reduced";
  let description = [{
    Computes the ops between a cut reduction and the `dist.reshard` that reduces its contributions in f32, reduces in f32
    and rounds once, as one device does. A reduction of bf16 or f16 then sends four bytes per element. Partial values that
    leave this region (a result annotated partial, the carry of a loop) keep their element type.
  }];
}

def DistPlanReshards : Dist_Pass<"dist-plan-reshards"> {
  let summary = "Replace each dist.reshard by the cheapest chain of moves";
  let description = [{
    Replaces every `dist.reshard` within one mesh by a chain of reshards with one move each in `dist.move` (slice,
    all_gather, reduce_scatter, all_reduce, all_to_all, permute, halo_exchange or exchange): the shortest path over
    placements under the cost model. A window around each device's own part takes one halo exchange per dimension.
    Between meshes whole values are sent: contributions are reduced before and made after.

    Before that, the pass decides where windows are made. A window of a padded value becomes the pad of a window of its
    source, and a window of a rearranged value the rearrangement of windows of its operands, where that sends less: fill
    between or around elements is not sent. The copy of the op has the windows in its `dist.op_sharding`. A pad that is
    distributed gets a window of its source whose `fill` is the pad's.

    With `remarks`, the pass reports the chain, its cost, the runner-up (the cheapest chain without the most expensive
    move of the chosen one) and the bytes that any plan must receive.
  }];
  let options = [
    Option<"objective", "objective", "std::string", "\"time\"", "Objective: time or bytes">,
    Option<"topology", "topology", "std::string", "\"\"", "Topology file (JSON); default an 8-GPU NVLink node">,
    Option<"remarks", "remarks", "bool", "false", "Emit a remark for every chain that communicates">,
  ];
}

def DistPartition : Dist_Pass<"dist-partition"> {
  let summary = "Lower global shapes to local shapes, and reshards to collectives";
  let description = [{
    Writes one function in the local view per distinct set of devices. Masks the padding of uneven reductions, writes each
    reshard as the collective of its `dist.move`, and adds the offset of a device to indices that a body reads. The
    options are for ops that communicate inside, such as a scan along a dimension that is cut.
  }];
  let options = [
    Option<"objective", "objective", "std::string", "\"time\"",
           "Objective of collectives inside ops: time or bytes">,
    Option<"topology", "topology", "std::string", "\"\"", "Topology file (JSON); default an 8-GPU NVLink node">,
    Option<"remarks", "remarks", "bool", "false",
           "Emit a remark with bytes, modelled time and reason for every chain of collectives inside an op">,
  ];
}

def DistFuseCollectives : Dist_Pass<"dist-fuse-collectives"> {
  let summary = "Join collectives of one kind, group, reduction and element type";
  let description = [{
    Moves are all-to-alls, permutes, exchanges and halo exchanges. They are joined if the same devices meet in them: the
    axes of their groups are equal, permutes have the same pairs, exchanges change placements along the same axes.

    Modes: `auto` joins up to 64 MiB; `bucket` the bytes that take four times the modelled latency, between 1 and 25 MiB;
    `size` up to `config` MiB (a larger tensor stays alone). For all-reduce only, `ready` is `size` in the order in which the
    operands are computed, each bucket at its last operand, so that gradients are reduced during the backward pass (0 joins
    nothing), and `index` splits the all-reduces of a function at the indices of `config`: [20, 35] joins 0..19, 20..34 and
    the rest; without indices it is `auto`, and indices beyond the last all-reduce are named in a remark. `off` joins nothing.

    A joined collective keeps the operands of its first members live until the last one is available, and creates the
    results of its last members early. With `memory-budget`, collectives are joined only within the budget.
  }];
  let options = [
    Option<"memoryBudget", "memory-budget", "double", "0", "GiB per device; 0: no budget">,
    Option<"topology", "topology", "std::string", "\"\"", "Topology file (JSON); default an 8-GPU NVLink node">,
    Option<"allReduce", "all-reduce", "std::string", "\"auto\"", "Mode for all-reduce: off, auto, bucket, size, ready or index">,
    Option<"allGather", "all-gather", "std::string", "\"auto\"", "Mode for all-gather: off, auto, bucket or size">,
    Option<"reduceScatter", "reduce-scatter", "std::string", "\"auto\"", "Mode for reduce-scatter: off, auto, bucket or size">,
    Option<"moves", "moves", "std::string", "\"auto\"", "Mode for moves: off, auto, bucket or size">,
    ListOption<"config", "config", "int64_t", "MiB for size and ready (one number), or ascending indices for index, of the one kind that has this mode">,
    ListOption<"allReduceConfig", "all-reduce-config", "int64_t", "The same for all-reduce alone">,
    ListOption<"allGatherConfig", "all-gather-config", "int64_t", "The same for all-gather alone">,
    ListOption<"reduceScatterConfig", "reduce-scatter-config", "int64_t", "The same for reduce-scatter alone">,
    ListOption<"movesConfig", "moves-config", "int64_t", "The same for moves alone">,
  ];
}

def DistOverlapCollectives : Dist_Pass<"dist-overlap-collectives"> {
  let summary = "Overlap collectives with computation";
  let description = [{
    Schedules each block of a function in the local view on one compute queue and one queue per group of mesh axes, by
    modelled times. A collective starts when its operands are available (one whose result is larger, such as an all-gather:
    late enough to end just before its first reader), its wait is placed before its first reader, and independent ops run
    in between. Without `memory-budget`, overlap adds at most a tenth to the memory of a device.
  }];
  let options = [
    Option<"memoryBudget", "memory-budget", "double", "0", "GiB per device; 0: no budget">,
    Option<"topology", "topology", "std::string", "\"\"", "Topology file (JSON); default an 8-GPU NVLink node">,
  ];
}

def DistPrefetchLoops : Dist_Pass<"dist-prefetch-loops"> {
  let summary = "Overlap communication with another iteration of a loop";
  let description = [{
    Software pipelining of innermost loops of the local view with known trip count. Collectives that do not depend on
    earlier iterations, such as gathers of a layer's weights, run one iteration ahead; collectives whose results are only
    accumulated by the loop, such as sums of a layer's gradients, end one iteration later. The loop is unrolled by two, so
    that nothing is copied at the back edge, and its first and last iterations are peeled. Each op executes as often as
    before, with the same operands; `dist-overlap-collectives` then overlaps the collectives with products. A device keeps
    the gathered weights, and the unreduced gradients, of two iterations: as many as fit, in the order of their first
    readers. Without `memory-budget`, they may take a tenth of the memory of a device.
  }];
  let options = [
    Option<"memoryBudget", "memory-budget", "double", "0", "GiB per device; 0: no budget">,
    Option<"topology", "topology", "std::string", "\"\"", "Topology file (JSON); default an 8-GPU NVLink node">,
  ];
}

def DistDecomposeProducts : Dist_Pass<"dist-decompose-products"> {
  let summary = "Decompose a product and its collective into parts";
  let description = [{
    Cuts a product and the all-gather of one of its operands, or the reduce-scatter of its result, into 2, 4 or 8 parts
    along another loop of the product, if sending one part during the multiplication of another saves modelled time. The
    order of additions does not change. `dist-overlap-collectives` starts and awaits the collectives of the parts.
  }];
  let options = [
    Option<"topology", "topology", "std::string", "\"\"", "Topology file (JSON); default an 8-GPU NVLink node">,
  ];
}

def DistRingProducts : Dist_Pass<"dist-ring-products"> {
  let summary = "Pass the blocks of a product around a ring";
  let description = [{
    Replaces the all-gather of a product's operand, or the reduce-scatter of its result, by permutes around a ring of at
    most 16 devices, where the model says that this is faster than the whole collective and than
    `dist-decompose-products`. Of a gather each device multiplies the block that it has while it gets the next one, by
    each product that does not need the result of another one of them; other readers get the gathered value. Of a
    reduce-scatter the sum of a block travels, and each device adds its contribution. Blocks are of equal length: of an
    uneven dimension the last ones are padded, with zeros where it is summed over. Elements are added up in the order in
    which they were, except where the gathered dimension is summed over, or sums are scattered: these are correct within
    rounding, and 16-bit floats are added up in f32.
  }];
  let options = [
    Option<"topology", "topology", "std::string", "\"\"", "Topology file (JSON); default an 8-GPU NVLink node">,
    Option<"always", "always", "bool", "false", "Rewrite every product where possible, regardless of cost (for tests)">,
  ];
}

def DistLimitMemory : Dist_Pass<"dist-limit-memory"> {
  let summary = "Rematerialize collectives to keep a memory budget";
  let description = [{
    If the peak of a function in the local view exceeds `memory-budget`, the pass first delays collectives whose results are
    larger than their operands until just before the first reader. Of the values that are then idle at the peak, between
    two of their uses (a weight that is gathered in the forward pass and read again in the backward pass), it rematerializes
    those that free most bytes per second of communication, until the peak is within the budget or no value is left.
  }];
  let options = [
    Option<"memoryBudget", "memory-budget", "double", "0", "GiB per device; 0: no budget">,
    Option<"topology", "topology", "std::string", "\"\"", "Topology file (JSON); default an 8-GPU NVLink node">,
  ];
}

def DistCanonicalizeCollectives : Dist_Pass<"dist-canonicalize-collectives"> {
  let summary = "Reduce the number of collectives by local rewrites";
  let description = [{
    Combines an all-reduce and a slice over the same axes into a reduce-scatter, merges equal collectives of one value, and
    erases unused ones. The last iteration of a loop is taken out of it where nothing reads what its collectives make, the
    first one where they move a constant.
  }];
}

#endif // TESSERA_TRANSFORMS_PASSES
