//===- RtBase.td - The rt dialect, its types ----------------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RT_BASE
#define TESSERA_RT_BASE

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def Rt_Dialect : Dialect {
  let name = "rt";
  let cppNamespace = "::tessera::rt";
  let summary = "A device's steps";
  let description = [{
    The `rt` dialect is the device program as IR: what docs/step-format.md defines, with names instead of
    indices. A slot is an SSA value, so a step cannot use one that is not declared; a kernel is a function of the
    module; a layout is a `#dist.sharding` with the global type beside it.

    What follows from the rest is not written down and thus never stale: the orders, the ids of
    collectives, wire bytes and layouts are computed when the program is serialised.

    `rt.group` and `rt.yield` belong to the stage before: they hold the ops of the local view that
    become one kernel (`codegen-fuse`), until `codegen-outline-kernels` makes them functions. `rt.product` is a
    contraction with what a library does to its result (`codegen-form-epilogues`), until it is a gemm. `rt.contraction`
    is one whose operands are accessed at strides (`codegen-form-contractions`), until it is an `rt.contract`.

    A kernel is a private function with the attribute `kernel.reads = n`: its first n arguments are only read,
    the others are the destinations, one a result, whose incoming value may be an accumulator's init.

    Constraints. A message of the verifier quotes the value and states the rule; tests name the label.

    | label | rule |
    |---|---|
    | R1 | a slot lies within the arena of its part, at a multiple of its element size |
    | R2 | the mesh of a part is declared; a collective's is it, or another over the same devices |
    | R3 | a launch names a kernel and passes as many slots, of its types, as the kernel reads and writes |
    | R4 | the matrices of a gemm lie within their slots; leading dimensions are at least a row |
    | R5 | a slot has the shape that its layout gives a device's buffer, and the element type of the global tensor |
    | R6 | a token is waited for exactly once, in the block that starts it |
    | R7 | homes name an argument or a result that exists; a result has one home, in a fed argument's home when it feeds one |
    | R8 | a copy's slots hold equally many bytes |
    | R9 | only slots of the arena are written |
    | R10 | a loop's constant step is positive |
    | R11 | send and recv of an id come in pairs and agree |
    | R12 | a bias has n elements of C's type, an epilogue is "relu" or "gelu"; both stand in products of f32, f16 or bf16 |
    | R13 | the loops of a contraction have positive extents and a stride for each operand, and stay within the operands; A and B are both f32, f16 or bf16, C is f32 |
  }];
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerTypes();
    /// On a function: how many of its arguments, from the front, the kernel only reads.
    static constexpr ::llvm::StringLiteral kKernelReads = "kernel.reads";
  }];
}

def Rt_SlotType : TypeDef<Rt_Dialect, "Slot"> {
  let mnemonic = "slot";
  let summary = "An interval of a part's arena, or of the constants: a dense row-major buffer";
  let description = "`!rt.slot<32x1024xf32>`, `!rt.slot<index>`.";
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    static SlotType get(::mlir::RankedTensorType tensor);
    ::mlir::RankedTensorType getTensorType() const;
    int64_t getNumElements() const;
    /// Bytes of the buffer: i1 takes one, index eight.
    int64_t getNumBytes() const;
  }];
}

def Rt_TokenType : TypeDef<Rt_Dialect, "Token"> {
  let mnemonic = "token";
  let summary = "An asynchronous collective on its way";
}

// Buildable, so that the syntax need not repeat them.
def Rt_IndexSlot : Type<CPred<"$_self == ::tessera::rt::SlotType::get($_self.getContext(), {}, ::mlir::IndexType::get($_self.getContext()))">,
    "slot of one index">,
  BuildableType<"::tessera::rt::SlotType::get($_builder.getContext(), {}, $_builder.getIndexType())">;
def Rt_BoolSlot : Type<CPred<"$_self == ::tessera::rt::SlotType::get($_self.getContext(), {}, ::mlir::IntegerType::get($_self.getContext(), 1))">,
    "slot of one i1">,
  BuildableType<"::tessera::rt::SlotType::get($_builder.getContext(), {}, $_builder.getI1Type())">;
def Rt_Token : Type<CPred<"::llvm::isa<::tessera::rt::TokenType>($_self)">, "token">,
  BuildableType<"::tessera::rt::TokenType::get($_builder.getContext())">;

class Rt_Op<string mnemonic, list<Trait> traits = []> : Op<Rt_Dialect, mnemonic, traits>;

#endif // TESSERA_RT_BASE
