//===- RtBase.td - The rt dialect, its types ---------------*- tablegen -*-===//
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
  let summary = "The program of one device as a list of steps";
  let description = [{
    The `rt` dialect represents the device program that docs/step-format.md defines, with names instead of indices.
    A slot is an SSA value, so a step cannot use an undeclared slot. A kernel is a function of the module. A layout is
    a `#dist.sharding` together with the global type.

    Derived data is not stored, so it cannot be stale: the orders, the ids of collectives, wire bytes and layouts are
    computed when the program is serialized.

    Some ops exist only before the steps are formed. `rt.group` and `rt.yield` hold the ops of the local view that
    become one kernel (`codegen-fuse`), until `codegen-outline-kernels` outlines them to functions. `rt.product` is a
    contraction with an epilogue (`codegen-form-epilogues`), until it becomes a gemm. `rt.contraction` is a contraction
    with strided operands (`codegen-form-contractions`), until it becomes an `rt.contract`. `rt.call_blocks` calls a
    kernel for each block of rows (`codegen-join-kernels`), until it becomes an `rt.launch`.

    A kernel is a private function with the attribute `kernel.reads = n`: it only reads its first n arguments. The
    others are the destinations, one per result, which may hold the initial value of an accumulator.

    Constraints. The verifier's messages quote the value and state the rule; tests are named after the label.

    | label | rule |
    |---|---|
    | R1 | a slot is within the arena of its part, at a multiple of its element size |
    | R2 | the mesh of a part is declared; the mesh of a collective has the same devices |
    | R3 | a launch names a kernel and passes slots that match its arguments in number and types |
    | R4 | the matrices of a gemm are within their slots; a leading dimension is at least the length of a row |
    | R5 | a slot has the per-device shape of its layout and the element type of the global tensor |
    | R6 | a token has exactly one wait, in the block of its start |
    | R7 | a home refers to an existing argument or result; a result has one home, which is that of the argument that it feeds, if any |
    | R8 | the slots of a copy have the same size in bytes |
    | R9 | steps write slots of the arena only, not constants |
    | R10 | the step of a loop, if constant, is positive |
    | R11 | each send has one recv of the same id, with equal attributes |
    | R12 | a bias has n elements of C's type, an epilogue is "relu" or "gelu"; both require operands of f32, f16 or bf16 |
    | R13 | the loops of a contraction have positive extents and a stride for each operand, and stay within the operands; A and B are both f32, f16 or bf16, C is f32 |
    | R14 | an operand that is cut has a block of the kernel's argument type for each call; what is written is cut |
  }];
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerTypes();
    /// The number of leading arguments of a function that the kernel only reads.
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
  let summary = "An asynchronous collective in flight";
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
