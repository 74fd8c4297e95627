//===- RtOps.td - Programs, parts, slots, groups -----------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RT_OPS
#define TESSERA_RT_OPS

include "tessera/Dialect/Rt/IR/RtBase.td"
include "tessera/Dialect/Dist/IR/DistAttributes.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

//===----------------------------------------------------------------------===//
// Before the steps: groups of ops that become one kernel
//===----------------------------------------------------------------------===//

def Rt_GroupOp : Rt_Op<"group", [SingleBlock, NoRegionArguments, RecursiveMemoryEffects]> {
  let summary = "Ops of the local view that become one kernel";
  let description = [{
    ```mlir
    %s = rt.group "max_sub_exp" { … rt.yield %e : tensor<4x8xf32> } : tensor<4x8xf32>
    ```
    The region may use tensors, but not scalars, that are defined outside of it.
  }];
  let arguments = (ins StrAttr:$name);
  let regions = (region SizedRegion<1>:$body);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "$name $body attr-dict `:` type($results)";
  let hasVerifier = 1;
}

def Rt_YieldOp : Rt_Op<"yield", [Pure, ReturnLike, Terminator, ParentOneOf<["GroupOp"]>]> {
  let summary = "Yields the results of a group";
  let arguments = (ins Variadic<AnyRankedTensor>:$operands);
  let assemblyFormat = "$operands attr-dict `:` type($operands)";
}

def Rt_ContractionOp : Rt_Op<"contraction", [Pure, AllTypesMatch<["init", "result"]>, DestinationStyleOpInterface]> {
  let summary = "A contraction of two tensors with strided access";
  let description = [{
    ```mlir
    %y = rt.contraction %a, %b into %init starts [0, 2, 0] extents [4, 3] strides [1, 1], [0, -1], [1, 0]
      : tensor<6xf32>, tensor<3xf32> into tensor<4xf32>
    ```
    Computes init + sum of a · b over all loops. In each iteration a dense operand is accessed at its start plus the sum
    of index times stride over the loops, in elements. With `overwrite` the sum replaces the elements of init that are
    written; the others keep their value. `rt.contract` is the same on slots. Rule R13.
  }];
  let arguments = (ins AnyRankedTensor:$a, AnyRankedTensor:$b, AnyRankedTensor:$init, DenseI64ArrayAttr:$starts,
                       DenseI64ArrayAttr:$extents, DenseI64ArrayAttr:$a_strides, DenseI64ArrayAttr:$b_strides,
                       DenseI64ArrayAttr:$c_strides, UnitAttr:$overwrite);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $a `,` $b `into` $init `starts` $starts `extents` $extents `strides` $a_strides `,` $b_strides `,` $c_strides
    (`overwrite` $overwrite^)? attr-dict
    `:` type($a) `,` type($b) `into` type($init)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
  }];
}

def Rt_ProductOp : Rt_Op<"product", [Pure, AllTypesMatch<["init", "result"]>, DestinationStyleOpInterface]> {
  let summary = "A contraction with a bias and an epilogue";
  let description = [{
    ```mlir
    %y = rt.product %a, %b into %init bias %bias epilogue "relu" maps [#a, #b, #c]
      : tensor<4x16xf32>, tensor<16x8xf32> into tensor<4x8xf32> bias tensor<8xf32>
    ```
    Computes epilogue(init + a · b + bias). The extents of the loops are those of the operands under `maps`, which are
    projected permutations. The bias has one element per column of the matrix product. Rule R12.
  }];
  let arguments = (ins AnyRankedTensor:$a, AnyRankedTensor:$b, AnyRankedTensor:$init, Optional<AnyRankedTensor>:$bias,
                       OptionalAttr<StrAttr>:$epilogue, AffineMapArrayAttr:$maps);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $a `,` $b `into` $init (`bias` $bias^)? (`epilogue` $epilogue^)? `maps` $maps attr-dict
    `:` type($a) `,` type($b) `into` type($init) (`bias` type($bias)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
    /// The maps as values, and the extents of their loops.
    ::llvm::SmallVector<::mlir::AffineMap> getMapValues();
    ::llvm::SmallVector<int64_t> getLoopExtents();
  }];
}

def Rt_CallBlocksOp : Rt_Op<"call_blocks", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Calls a kernel for each of equal blocks of its operands";
  let description = [{
    ```mlir
    %y = rt.call_blocks @k0_add_4(%x, %bias, %init) blocks 4 cut [true, false, true]
      : (tensor<8x16xf32>, tensor<16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    ```
    Operands that are cut consist of contiguous blocks of the type that the kernel takes; the others are passed whole. The
    last operands are the destinations of the results, which are cut. Rule R14.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<AnyRankedTensor>:$operands, I64Attr:$blocks,
                       DenseBoolArrayAttr:$cut);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $kernel `(` $operands `)` `blocks` $blocks `cut` $cut attr-dict `:` functional-type($operands, $results)
  }];
}

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

def Rt_ProgramOp : Rt_Op<"program", [Symbol, IsolatedFromAbove, SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "A program for all devices";
  let description = [{
    Holds the arguments and results in order, then one part for each distinct set of devices. Steps of a part execute in
    their textual order. In the total order over parts, the two sides of a transfer are adjacent. `peak_bytes` is the
    maximum over devices of the sum of the arenas of the device's parts.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<I64Attr>:$peak_bytes);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name (`peak` $peak_bytes^)? attr-dict-with-keyword $body";
  let extraClassDeclaration = [{
    /// The bytes of all arenas on the device that has most.
    int64_t sumArenas();
  }];
  let hasRegionVerifier = 1;
}

def Rt_ArgumentOp : Rt_Op<"argument", [HasParent<"ProgramOp">]> {
  let summary = "An argument of the program, with its global type";
  let description = "`rt.argument \"x\" : tensor<64x1024xf32>`; `range [lo, hi]` bounds randomly generated integers.";
  let arguments = (ins StrAttr:$name, TypeAttrOf<AnyRankedTensor>:$type, OptionalAttr<DenseI64ArrayAttr>:$range);
  let assemblyFormat = "$name `:` $type (`range` $range^)? attr-dict";
}

def Rt_ResultOp : Rt_Op<"result", [HasParent<"ProgramOp">]> {
  let summary = "A result of the program, with its global type";
  let description = "With `feeds k` the result is argument k of the next step, in the same buffer.";
  let arguments = (ins StrAttr:$name, TypeAttrOf<AnyRankedTensor>:$type, OptionalAttr<I64Attr>:$feeds);
  let assemblyFormat = "$name `:` $type (`feeds` $feeds^)? attr-dict";
}

def Rt_PartOp : Rt_Op<"part", [HasParent<"ProgramOp">, SingleBlock, NoTerminator, NoRegionArguments,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The steps that every device of a mesh executes";
  let description = [{
    ```mlir
    rt.part "main" over @pod arena 131072 { … }
    ```
    Slots, coordinates and homes come first, then the steps. `packed` are the last bytes of the arena, in which the
    runtime keeps packed operands of products.
  }];
  let arguments = (ins StrAttr:$name, FlatSymbolRefAttr:$mesh, I64Attr:$arena_bytes,
    OptionalAttr<I64Attr>:$packed_bytes);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$name `over` $mesh `arena` $arena_bytes (`packed` $packed_bytes^)? attr-dict-with-keyword $body";
}

def Rt_SlotOp : Rt_Op<"slot", [HasParent<"PartOp">, Pure,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "An interval of the arena";
  let description = "`%x = rt.slot \"x\" at 0 : !rt.slot<32x1024xf32>`. Slots with disjoint live ranges may overlap. Rule R1.";
  let arguments = (ins StrAttr:$name, I64Attr:$offset);
  let results = (outs Rt_SlotType:$slot);
  let assemblyFormat = "$name `at` $offset attr-dict `:` qualified(type($slot))";
  let hasVerifier = 1;
}

def Rt_ConstantOp : Rt_Op<"constant", [HasParent<"PartOp">, Pure,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "A read-only slot, shared by all devices";
  let description = "`%c = rt.constant \"table\" dense<…> : tensor<16xf32> in !rt.slot<16xf32>`";
  let arguments = (ins StrAttr:$name, ElementsAttr:$value);
  let results = (outs Rt_SlotType:$slot);
  let assemblyFormat = "$name $value `in` qualified(type($slot)) attr-dict";
  let hasVerifier = 1;
}

def Rt_CoordinateOp : Rt_Op<"coordinate", [HasParent<"PartOp">]> {
  let summary = "A slot that the runtime initializes with the device's linear index over axes of a mesh";
  let description = "The default mesh is that of the part; another mesh over the same devices may be given.";
  let arguments = (ins Rt_IndexSlot:$slot, OptionalAttr<FlatSymbolRefAttr>:$mesh, Dist_AxisListAttr:$axes);
  let assemblyFormat = "$slot `over` ($mesh^)? custom<AxisList>($axes) attr-dict";
}

class Rt_HomeOp<string mnemonic> : Rt_Op<mnemonic, [HasParent<"PartOp">,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let arguments = (ins I64Attr:$index, Rt_SlotType:$slot, Dist_ShardingAttr:$layout);
  let assemblyFormat = "$index `in` $slot `:` qualified(type($slot)) `as` $layout attr-dict";
}

def Rt_ArgumentHomeOp : Rt_HomeOp<"argument_home"> {
  let summary = "The slot that holds an argument in this part";
  let description = "`rt.argument_home 0 in %x : !rt.slot<32x1024xf32> as #dist.sharding<@pod, [shard(0), replicate]>`";
}

def Rt_ResultHomeOp : Rt_HomeOp<"result_home"> {
  let summary = "The slot that holds a result after the last step";
}

#endif // TESSERA_RT_OPS
