//===- DistBase.td - The dist dialect -----------------------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIST_BASE
#define TESSERA_DIST_BASE

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def Dist_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::tessera::dist";
  let summary = "Tensors on meshes of devices";
  let description = [{
    The `dist` dialect says how tensors lie on meshes of devices, and moves them.

    A program has two views. In the **global view** tensors have their global shapes and some are
    annotated; in the **local view** (functions with `dist.view = "local"`) they have the shapes of one
    device's buffers and collectives move what devices lack.

    Discardable attributes of this dialect:

    | attribute | on | meaning |
    |---|---|---|
    | `dist.sharding` | function arguments and results | its `#dist.sharding` |
    | `dist.shardings` | ops with tensor results | one `#dist.sharding` a result (`unit` for what is no tensor) |
    | `dist.op_sharding` | ops of the global view | its `#dist.op_sharding`: how the op is distributed |
    | `dist.move` | `dist.reshard` | its `#dist.move`: the one collective that it is, once planned |
    | `dist.before_shardings` | `scf.while` | the same for the arguments of its first region |
    | `dist.name` | function arguments and results | the name in reports and on the command line |
    | `dist.feeds` | function results | index of the argument that it is in the next step |
    | `dist.range` | integer arguments | `[lo, hi]`, bounds of random values, hi exclusive |
    | `dist.view`, `dist.mesh`, `dist.mesh_devices`, `dist.part_of` | functions of the local view | `"local"`; their mesh; the process ids that run it; the function that it is a part of |
    | `dist.argument`, `dist.result` | arguments and results of the local view | their index in the original function |
    | `dist.custom_vjp` | `func.call` | a function that is the derivative of the call, for `dist-autodiff` |
    | `dist.reason` | reshards and collectives | why they are there |
    | `dist.global_type` | arguments and ops of the local view | the global tensor type (an array for several results) |

    Constraints. A message of the verifier quotes the value and states the rule; tests name the label.

    | label | rule |
    |---|---|
    | S1 | the mesh of a sharding is declared by a `dist.process_mesh` of the module |
    | S2 | a sharding has at most as many placements as its mesh has axes |
    | S3 | a sharded dimension lies in [-rank, rank) |
    | S4 | an axis, or a part of one, is used at most once |
    | S5 | a named axis exists in the mesh, and a part `(pre)size` divides it |
    | S6 | `order` is given for all axes of a dimension or for none, and counts 0, 1, … |
    | S7 | two partial axes have the same reduction, except sum with avg |
    | S8 | avg of integers does not exist |
    | S9 | by-dimension shardings have as many dimensions as the tensor |
    | S10 | shardings stand on ranked tensors; a list has one entry a result |
    | S11 | a tensor with a sharding has at most 2^48 elements |
    | O1 | an op sharding stands on an op that has a sharding rule, in the global view |
    | O2 | it has as many factors as the rule |
    | O3 | an axis cuts one factor or is forwarded, once |
    | O4 | factors that must be whole are, and parts of reshaped dimensions are contiguous |
    | O5 | contributions are forwarded from operands in which the op is linear, taken together |
    | O6 | the shardings of the op's results are those that follow from it |
    | F1 | `dist.feeds` names an argument of the same type, each argument at most once |
    | F2 | `dist.name` is not empty and unique among arguments and among results |
    | F3 | `dist.range` is `[lo, hi]` with lo < hi, values of its element type, on an integer tensor |
    | L1 | `dist.mesh` names a declared mesh |
    | L2 | `dist.mesh_devices` lists process ids, each once, those of `dist.mesh` where that is given |
    | L3 | `dist.argument` and `dist.result` lie in [0, 2^20) |
    | L4 | an argument or result of the local view has the type that its `dist.sharding` gives a device of its `dist.global_type`, a tensor of static shape |
    | L5 | `dist.part_of` and `dist.reason` are strings |
    | M1 | a mesh has at least one axis and as many names as axes |
    | M2 | names are unique and not empty |
    | M3 | extents are positive and their product is at most 4096 |
    | M4 | there are as many process ids as devices, unique and in [0, 2^20) |
    | C1 | a collective names a declared mesh, and axes of it, each once |
    | C2 | a dimension of a collective lies in [0, rank) |
    | C3 | operand and result types follow from the kind and the group size, or from `sources` and `targets` |
    | C4 | a reduction's element type has the reduction (no avg of integers) |
    | C5 | a collective does not stand under control flow that may differ between devices |
    | C6 | in the local view a partial value reaches linear operations only |
    | C7 | a token is waited for exactly once, in its own block |
    | C8 | the root of a collective, and each entry of a permutation, lies in [0, group size) |
    | D1 | `dist.checkpoint` yields values of the types of its results |
    | D2 | `dist.custom_vjp` names a function from the arguments and results of the call and one cotangent a result of floats to one cotangent an argument of floats |
    | R1 | the dimension of a rearrangement lies within the rank of its result |
    | R2 | its segments are five numbers an operand, and lie within operand and result; the first step is positive |
    | R3 | operands differ from the result in that dimension alone |
    | R4 | segments are disjoint; a fill of the element type is given where they leave something over |
  }];
  // Their ops get models of ShardingRuleOpInterface.
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
  let useDefaultAttributePrinterParser = 0;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let hasConstantMaterializer = 0;
  let extraClassDeclaration = [{
    ::mlir::Attribute parseAttribute(::mlir::DialectAsmParser &parser,
                                     ::mlir::Type type) const override;
    void printAttribute(::mlir::Attribute attribute,
                        ::mlir::DialectAsmPrinter &printer) const override;
    /// Op shardings that were verified, so that equal ones are verified once.
    OpShardingVerifier &getOpShardingVerifier() const { return *opShardingVerifier; }
    void registerAttributes();
    void registerTypes();
    void registerOperations();
    static constexpr ::llvm::StringLiteral kSharding = "dist.sharding";
    static constexpr ::llvm::StringLiteral kShardings = "dist.shardings";
    static constexpr ::llvm::StringLiteral kOpSharding = "dist.op_sharding";
    static constexpr ::llvm::StringLiteral kBeforeShardings = "dist.before_shardings";
    static constexpr ::llvm::StringLiteral kName = "dist.name";
    static constexpr ::llvm::StringLiteral kFeeds = "dist.feeds";
    static constexpr ::llvm::StringLiteral kRange = "dist.range";
    static constexpr ::llvm::StringLiteral kView = "dist.view";
    static constexpr ::llvm::StringLiteral kMeshDevices = "dist.mesh_devices";
    static constexpr ::llvm::StringLiteral kMesh = "dist.mesh";
    static constexpr ::llvm::StringLiteral kPartOf = "dist.part_of";
    static constexpr ::llvm::StringLiteral kArgument = "dist.argument";
    static constexpr ::llvm::StringLiteral kResult = "dist.result";
    static constexpr ::llvm::StringLiteral kGlobalType = "dist.global_type";
    static constexpr ::llvm::StringLiteral kReason = "dist.reason";
    static constexpr ::llvm::StringLiteral kMove = "dist.move";
    static constexpr ::llvm::StringLiteral kSearch = "dist.search";
    static constexpr ::llvm::StringLiteral kCustomVjp = "dist.custom_vjp";

  private:
    std::shared_ptr<OpShardingVerifier> opShardingVerifier;

  public:
  }];
}

#endif // TESSERA_DIST_BASE
