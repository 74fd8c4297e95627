//===- RtSteps.td - The steps ------------------------------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RT_STEPS
#define TESSERA_RT_STEPS

include "tessera/Dialect/Rt/IR/RtOps.td"

/// A step is nested in a part, a loop or a branch.
class Rt_Step<string mnemonic, list<Trait> traits = []>
    : Rt_Op<mnemonic, !listconcat([ParentOneOf<["PartOp", "LoopOp", "WhileOp", "IfOp"]>], traits)>;

def Rt_LaunchOp : Rt_Step<"launch", [AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Calls a kernel";
  let description = [{
    `rt.launch @k0_softmax(%x) to (%y) : (!rt.slot<4x8xf32>) to (!rt.slot<4x8xf32>)`. A slot may be both
    read and written only where the kernel supports in-place execution. With `blocks 2 cut [true, false]` the kernel is
    called for each block of the slots that are cut. If it `joins` the product before it, block i needs of the product's
    result only block i. Rules R3, R9, R14.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<Rt_SlotType>:$reads, Variadic<Rt_SlotType>:$writes,
                       DefaultValuedAttr<I64Attr, "1">:$blocks, OptionalAttr<DenseBoolArrayAttr>:$cut, UnitAttr:$joins);
  let assemblyFormat = [{
    $kernel `(` $reads `)` `to` ` ` `(` $writes `)` (`blocks` $blocks^ `cut` $cut)? (`joins` $joins^)? attr-dict `:` `(` qualified(type($reads)) `)` `to` ` ` `(` qualified(type($writes)) `)`
  }];
}

def Rt_GemmOp : Rt_Step<"gemm"> {
  let summary = "C[b] = epilogue(A[b] · B[b] (+ C[b]) (+ bias)), row-major";
  let description = [{
    ```mlir
    rt.gemm %a, %b to %c batch 1 m 4 n 8 k 16 ld [16, 8, 8] stride [0, 0, 0] accumulate : !rt.slot<4x16xf32>, !rt.slot<16x8xf32> to !rt.slot<4x8xf32>
    ```
    `ld` holds the leading dimensions and `stride` the batch strides of A, B and C, in elements; a stride of 0 broadcasts
    an operand. With `trans_a`, A is k x m. C may be f32 where A and B are f16 or bf16. `bias %bias` is added to every
    row; `epilogue "relu"` or `"gelu"` (tanh approximation) is applied last. Only GPU targets support bias and
    epilogue. Rules R4, R9, R12.
  }];
  let arguments = (ins Rt_SlotType:$a, Rt_SlotType:$b, Rt_SlotType:$c, Optional<Rt_SlotType>:$bias,
                       I64Attr:$batch, I64Attr:$m, I64Attr:$n, I64Attr:$k,
                       DenseI64ArrayAttr:$ld, DenseI64ArrayAttr:$stride,
                       UnitAttr:$trans_a, UnitAttr:$trans_b, UnitAttr:$accumulate, OptionalAttr<StrAttr>:$epilogue);
  let assemblyFormat = [{
    $a `,` $b `to` $c (`bias` $bias^)? `batch` $batch `m` $m `n` $n `k` $k `ld` $ld `stride` $stride
    (`trans_a` $trans_a^)? (`trans_b` $trans_b^)? (`accumulate` $accumulate^)? (`epilogue` $epilogue^)? attr-dict
    `:` qualified(type($a)) `,` qualified(type($b)) `to` qualified(type($c)) (`bias` qualified(type($bias))^)?
  }];
  let hasVerifier = 1;
}

def Rt_ContractOp : Rt_Step<"contract"> {
  let summary = "C (+)= sum of A · B over loops with strided access to slots";
  let description = [{
    ```mlir
    rt.contract %a, %b to %c starts [0, 2, 0] extents [4, 3] strides [1, 1], [0, -1], [1, 0] accumulate
      : !rt.slot<6xf32>, !rt.slot<3xf32> to !rt.slot<4xf32>
    ```
    In each iteration of all loops an operand is accessed at its start plus the sum of index times stride, in elements.
    Loops in which C has a nonzero stride are parallel, the others are reductions. A and B are f32, f16 or bf16, C is
    f32. Only CPU targets support it. Rules R9, R13.
  }];
  let arguments = (ins Rt_SlotType:$a, Rt_SlotType:$b, Rt_SlotType:$c, DenseI64ArrayAttr:$starts,
                       DenseI64ArrayAttr:$extents, DenseI64ArrayAttr:$a_strides, DenseI64ArrayAttr:$b_strides,
                       DenseI64ArrayAttr:$c_strides, UnitAttr:$accumulate);
  let assemblyFormat = [{
    $a `,` $b `to` $c `starts` $starts `extents` $extents `strides` $a_strides `,` $b_strides `,` $c_strides
    (`accumulate` $accumulate^)? attr-dict `:` qualified(type($a)) `,` qualified(type($b)) `to` qualified(type($c))
  }];
  let hasVerifier = 1;
}

def Rt_CollectiveOp : Rt_Step<"collective", [AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Redistributes every operand from its source layout to its target layout";
  let description = [{
    ```mlir
    rt.collective "all_reduce"(%a) to (%b) over @pod ["tp"] reduction sum {sources = […], targets = […], global_types = […]}
      : (!rt.slot<4x8xf32>) to (!rt.slot<4x8xf32>)
    ```
    A collective with a token is asynchronous. `target_mesh` is the mesh of the target layouts if it differs from `mesh`;
    both have the same devices. `fill` is written to the padding of the targets. Rules R2, R5, R6, R9.
  }];
  let arguments = (ins StrAttr:$kind, Variadic<Rt_SlotType>:$sources, Variadic<Rt_SlotType>:$targets, FlatSymbolRefAttr:$mesh,
                       Dist_AxisListAttr:$axes, OptionalAttr<Dist_ReduceKind>:$reduction, OptionalAttr<AnyAttr>:$fill,
                       OptionalAttr<FlatSymbolRefAttr>:$target_mesh,
                       ArrayAttr:$source_layouts, ArrayAttr:$target_layouts, ArrayAttr:$global_types);
  let results = (outs Optional<Rt_Token>:$token);
  let assemblyFormat = [{
    $kind `(` $sources `)` `to` ` ` `(` $targets `)` `over` $mesh custom<AxisList>($axes) (`reduction` $reduction^)?
    (`fill` $fill^)? (`target` $target_mesh^)? `from` $source_layouts `to` $target_layouts `global` $global_types attr-dict
    `:` `(` qualified(type($sources)) `)` `to` ` ` `(` qualified(type($targets)) `)` (`->` type($token)^)?
  }];
  let hasVerifier = 1;
}

class Rt_TransferOp<string mnemonic> : Rt_Step<mnemonic, [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let arguments = (ins Rt_SlotType:$slot, I64Attr:$id, Dist_ShardingAttr:$source_layout,
                       Dist_ShardingAttr:$target_layout, TypeAttrOf<AnyRankedTensor>:$global_type);
  let assemblyFormat = [{
    $slot `:` qualified(type($slot)) `id` $id `global` $global_type `from` $source_layout `to` $target_layout attr-dict
  }];
}

def Rt_SendOp : Rt_TransferOp<"send"> {
  let summary = "Sends a slot to another part, paired with a recv by its id";
  let description = "`rt.send %a : !rt.slot<4x8xf32> id 3 global tensor<8x8xf32> from #dist.sharding<@s0, …> to #dist.sharding<@s1, …>`";
}

def Rt_RecvOp : Rt_TransferOp<"recv"> {
  let summary = "Receives the slot of the `rt.send` with the same id";
}

def Rt_WaitOp : Rt_Step<"wait"> {
  let summary = "Waits until an asynchronous collective is complete on this device";
  let arguments = (ins Rt_Token:$token);
  let assemblyFormat = "$token attr-dict";
}

def Rt_CopyOp : Rt_Step<"copy"> {
  let summary = "Copies a buffer within the device";
  let arguments = (ins Rt_SlotType:$source, Rt_SlotType:$target);
  let assemblyFormat = "$source `to` $target attr-dict `:` qualified(type($source)) `to` qualified(type($target))";
  let hasVerifier = 1;
}

def Rt_LoopOp : Rt_Step<"loop", [AttrSizedOperandSegments, SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "A counted loop";
  let description = [{
    `rt.loop %i = 0 to %n step 1 { … }`: the executor writes the slot `%i` before each iteration. A bound is a constant or a slot.
  }];
  let arguments = (ins Rt_IndexSlot:$iv, Optional<Rt_IndexSlot>:$lower_slot, Optional<Rt_IndexSlot>:$upper_slot,
                       Optional<Rt_IndexSlot>:$step_slot,
                       OptionalAttr<I64Attr>:$lower, OptionalAttr<I64Attr>:$upper, OptionalAttr<I64Attr>:$step);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $iv `=` custom<Bound>($lower_slot, $lower) `to` custom<Bound>($upper_slot, $upper) `step` custom<Bound>($step_slot, $step)
    attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
}

def Rt_WhileOp : Rt_Step<"while", [NoRegionArguments, NoTerminator, SingleBlock]> {
  let summary = "Repeats: `before`, exit if the condition is false, `do`";
  let description = "`rt.while %condition before { … } do { … }`";
  let arguments = (ins Rt_BoolSlot:$condition);
  let regions = (region SizedRegion<1>:$before, SizedRegion<1>:$body);
  let assemblyFormat = "$condition `before` $before `do` $body attr-dict";
}

def Rt_IfOp : Rt_Step<"if", [NoRegionArguments, NoTerminator, SingleBlock]> {
  let summary = "Executes one of two lists of steps; the condition is equal on all devices of the mesh";
  let description = "`rt.if %condition then { … } else { … }`";
  let arguments = (ins Rt_BoolSlot:$condition);
  let regions = (region SizedRegion<1>:$then_steps, SizedRegion<1>:$else_steps);
  let assemblyFormat = "$condition `then` $then_steps `else` $else_steps attr-dict";
}

#endif // TESSERA_RT_STEPS
