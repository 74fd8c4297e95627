//===- DistBase.td - The dist dialect ----------------------*- tablegen -*-===//
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
  let summary = "Sharded tensors on meshes of devices, and their communication";
  let description = [{
    The `dist` dialect describes how tensors are sharded over meshes of devices, and how they are communicated.

    A program has two views. In the **global view** tensors have their global shapes, and some have sharding
    annotations. In the **local view** (functions with `dist.view = "local"`) tensors have the shapes of one
    device's buffers, and collectives communicate between devices.

    Discardable attributes of this dialect:

    | attribute | on | meaning |
    |---|---|---|
    | `dist.sharding` | function arguments and results | its `#dist.sharding` |
    | `dist.shardings` | ops with tensor results | one `#dist.sharding` per result (`unit` for a result that is not a tensor) |
    | `dist.op_sharding` | ops of the global view | its `#dist.op_sharding`: the distribution of the op |
    | `dist.move` | `dist.reshard` | its `#dist.move`: the collective that implements it, once planned |
    | `dist.before_shardings` | `scf.while` | one `#dist.sharding` per argument of its first region |
    | `dist.name` | function arguments and results | the name in reports and on the command line |
    | `dist.feeds` | function results | index of the argument that the result becomes in the next step |
    | `dist.range` | integer arguments | `[lo, hi]`, bounds of random values, hi exclusive |
    | `dist.view`, `dist.mesh`, `dist.mesh_devices`, `dist.part_of` | functions of the local view | `"local"`; the mesh; the process ids that run the function; the function of the global view that it is part of |
    | `dist.argument`, `dist.result` | arguments and results of the local view | their index in the original function |
    | `dist.custom_vjp` | `func.call` | the function that `dist-autodiff` calls for the derivative of this call |
    | `dist.reason` | reshards and collectives | why the compiler inserted them |
    | `dist.cached` | ops of an attention in blocks, and their loops | the results stay in a cache: prices have no memory traffic for them |
    | `dist.global_type` | arguments and ops of the local view | the global tensor type (an array for several results) |

    Constraints. The verifier's messages quote the value and state the rule; tests are named after the label.

    | label | rule |
    |---|---|
    | S1 | the mesh of a sharding is declared by a `dist.process_mesh` of the module |
    | S2 | a sharding has at most as many placements as its mesh has axes |
    | S3 | a sharded dimension is in [-rank, rank) |
    | S4 | an axis or sub-axis is used at most once |
    | S5 | a named axis exists in the mesh, and a sub-axis `(pre)size` divides it |
    | S6 | `order` is given for all axes of a dimension or for none, and counts 0, 1, … |
    | S7 | two partial axes have the same reduction, except sum with avg |
    | S8 | avg requires a floating-point element type |
    | S9 | by-dimension shardings have as many dimensions as the tensor |
    | S10 | only ranked tensors have shardings, and a list has one entry per result |
    | S11 | a tensor with a sharding has at most 2^48 elements |
    | O1 | only an op of the global view with a sharding rule has an op sharding |
    | O2 | it has as many factors as the rule |
    | O3 | an axis cuts at most one factor or is forwarded, not both |
    | O4 | no axis cuts a factor that must be whole, and the parts of a reshaped dimension are contiguous |
    | O5 | partial values are forwarded only from operands in which the op is jointly linear |
    | O6 | the shardings of the op's results are those derived from the op sharding |
    | O7 | a window is one of a parallel factor of an op that computes windows, and its operands have such windows |
    | F1 | `dist.feeds` names an argument of the same type, and each argument at most once |
    | F2 | `dist.name` is not empty and unique among arguments and among results |
    | F3 | `dist.range` is on an integer tensor and is `[lo, hi]` with lo < hi, both values of its element type |
    | L1 | `dist.mesh` names a declared mesh |
    | L2 | `dist.mesh_devices` lists distinct process ids, and those of `dist.mesh` where that is given |
    | L3 | `dist.argument` and `dist.result` are in [0, 2^20) |
    | L4 | an argument or result of the local view has the per-device type of its `dist.global_type`, a static shape, under its `dist.sharding` |
    | L5 | `dist.part_of` and `dist.reason` are strings |
    | M1 | a mesh has at least one axis, and one name per axis |
    | M2 | axis names are unique and not empty |
    | M3 | extents are positive and their product is at most 2^20 |
    | M4 | there is one process id per device, unique and in [0, 2^20) |
    | C1 | a collective names a declared mesh and distinct axes of it |
    | C2 | a dimension of a collective is in [0, rank) |
    | C3 | operand and result types follow from the kind and the group size, or from `sources` and `targets` |
    | C4 | the element type supports the reduction (avg requires a floating-point type) |
    | C5 | a collective is not nested in control flow that may differ between devices |
    | C6 | in the local view a partial value is used by linear operations only |
    | C7 | a token has exactly one wait, in its own block |
    | C8 | the root of a collective and each entry of a permutation are in [0, group size) |
    | D1 | `dist.checkpoint` yields values of the types of its results |
    | D2 | `dist.custom_vjp` names a function that takes the call's arguments, its results and one cotangent per floating-point result, and returns one cotangent per floating-point argument |
    | R1 | the dimension of a rearrangement is in [0, rank) of its result |
    | R2 | its segments are five integers per operand, within the bounds of operand and result; the first step is positive |
    | R3 | operands and result have the same extents in all other dimensions |
    | R4 | segments are disjoint, and a fill of the element type is given unless they cover the result |
    | R5 | the fill of a reshard has the element type, and its target has windows |
  }];
  // The dialects whose ops get external models of ShardingRuleOpInterface.
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
    /// Remembers verified op shardings, so that equal ones are verified once.
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
    static constexpr ::llvm::StringLiteral kGroups = "dist.groups";
    static constexpr ::llvm::StringLiteral kCached = "dist.cached";
    static constexpr ::llvm::StringLiteral kSearch = "dist.search";
    static constexpr ::llvm::StringLiteral kCustomVjp = "dist.custom_vjp";

  private:
    std::shared_ptr<OpShardingVerifier> opShardingVerifier;

  public:
  }];
}

#endif // TESSERA_DIST_BASE
