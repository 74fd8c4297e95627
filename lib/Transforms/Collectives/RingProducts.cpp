//===- RingProducts.cpp - Multiply blocks that travel around a ring -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A product cannot hide the gather of its operand or the reduce-scatter of its result. In a ring
// (S. Wang et al., "Overlap Communication with Dependent Computation via Decomposition", ASPLOS
// 2023) each of n devices passes a block to the next one n-1 times, while it multiplies:
//
//   w = all_gather v; y = x · w     v_0 = v, v_s = permute v_s-1: the block of device d - s.
//                                   Its product is the block's part of y, or, where the gathered
//                                   dimension is summed over, is added to y.
//   y = x · w; z = reduce_scatter y  z_1 is block d - 1 of x · w, z_s = permute z_s-1 is added to
//                                   block d - s of it; z = z_n, the device's own block. One half
//                                   of a block travels while the other half is multiplied.
//
//   device       0  1  2  3
//   turn 0       0  1  2  3    the block of a gather
//   turn 1       3  0  1  2    the same, and that which a reduce-scatter begins with
//   turn 2       2  3  0  1
//   turn 3       1  2  3  0
//
// A permute is a move to the same mesh with its devices renumbered: block i of the target is at the
// device after that of the source. All blocks are as long as the longest, so that one renumbered
// mesh does for all turns; elements past the end of the tensor are zero where they are summed.
//
//===----------------------------------------------------------------------===//

#include "ProductParts.h"

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Dist/Rules/Rules.h"
#include "tessera/Planning/CostOptions.h"
#include "tessera/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/SymbolTable.h"

namespace tessera::dist {
#define GEN_PASS_DEF_DISTRINGPRODUCTS
#include "tessera/Transforms/Passes.h.inc"
} // namespace tessera::dist

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::TensorSharding;

/// Turns are written one after the other: more of them are too much code, and products too small.
static constexpr int64_t kMostTurns = 16;

namespace {

/// A product around a ring.
struct Member {
  linalg::LinalgOp product;
  OpOperand *operand; ///< which is gathered, or the init of the result that is scattered
  unsigned loop;      ///< that runs over the blocks
  bool sums;          ///< over this loop
};

struct Ring {
  CollectiveOpInterface collective;
  bool gathers;
  int64_t devices;
  unsigned dim;          ///< of the collective
  int64_t block, length; ///< extents of the dimension: of a part, of the whole
  FlatSymbolRefAttr mesh;
  sharding::AxisList axes; ///< of the group
  TensorSharding parts;    ///< of the tensor in parts
  RankedTensorType global; ///< the tensor, with blocks of equal lengths
  SmallVector<Member> members;
  bool isReadWhole = false; ///< by others than members

  int64_t padded() const { return devices * block; }
};

class RingFinder {
public:
  RingFinder(const MeshTable &meshes, const StepCosts &costs, const sharding::Topology &topology,
             int64_t devices, bool always)
      : meshes(meshes), costs(costs), topology(topology), devices(devices), always(always) {}

  /// The ring of a collective, if it saves time.
  std::optional<Ring> find(Operation *collective);

private:
  std::optional<Ring> describe(CollectiveOpInterface collective);
  void addReaders(Ring &ring);
  std::optional<Member> memberOf(const Ring &ring, linalg::LinalgOp product,
                                 OpOperand *operand) const;
  bool isCutAround(const Ring &ring, Value value) const;
  double secondsOf(const Ring &ring) const;
  double copySeconds(double bytes) const {
    return topology.computeSeconds(0, bytes, "f32", devices);
  }
  double turnSeconds(const Ring &ring, const Member &member) const;

  const MeshTable &meshes;
  const StepCosts &costs;
  const sharding::Topology &topology;
  int64_t devices;
  bool always; ///< rings that do not save time, too
};

/// Writes the turns of a ring in place of its collective and products.
class RingWriter {
public:
  RingWriter(ModuleOp module, const MeshTable &meshes, Ring &ring)
      : module(module), meshes(meshes), ring(ring), builder(ring.collective),
        loc(ring.collective.getLoc()) {}
  void write();

private:
  void writeGather();
  void writeScatter();
  /// Where the block that is `turn` blocks before the device's own begins; devices: its own.
  Value beginOf(int64_t turn);
  /// What the device before has: `size` indices of each block.
  Value passOn(Value block, int64_t size, int64_t turn);
  Value masked(Value block);
  Value padded(Value value, unsigned dim);
  /// The product of `size` indices of the loop, with `operand` for the gathered one, added to `sum`
  /// (null: the init).
  Value multiply(const Member &member, Value operand, Value begin, int64_t size, Value sum);
  Value pointwise(ValueRange inputs, Type element,
                  llvm::function_ref<Value(OpBuilder &, ValueRange)> body);
  Value add(Value a, Value b);
  FlatSymbolRefAttr nextMesh();
  void replace(Operation *op, Value value);

  ModuleOp module;
  const MeshTable &meshes;
  Ring &ring;
  OpBuilder builder;
  Location loc;
  SmallVector<Value> begins;                                     ///< by turn
  llvm::DenseMap<std::pair<Value, unsigned>, Value> paddedAlong; ///< looked up only
};

} // namespace

static bool isNarrow(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isBF16() || element.isF16();
}

//===----------------------------------------------------------------------===//
// Profitable rings
//===----------------------------------------------------------------------===//

/// Describes a gather or reduce-scatter as blocks of equal length in the order of the devices of
/// its axes; empty if it is not of this form.
std::optional<Ring> RingFinder::describe(CollectiveOpInterface collective) {
  bool gathers = isa<AllGatherOp>(collective);
  ArrayAttr sources = collective.getSourcesAttr();
  auto cut = collective->getAttrOfType<IntegerAttr>("dim");
  if (!sources || !cut || collective->getNumOperands() != 1)
    return std::nullopt;
  auto from = cast<ShardingAttr>(sources[0]),
       to = cast<ShardingAttr>(collective.getTargetsAttr()[0]);
  Type global = cast<TypeAttr>(collective.getGlobalTypesAttr()[0]).getValue();
  if (from.getMesh() != to.getMesh())
    return std::nullopt;
  TensorSharding source = resolveVerified(from, meshes, global);
  TensorSharding target = resolveVerified(to, meshes, global);
  const TensorSharding &parts = gathers ? source : target, &whole = gathers ? target : source;
  auto dim = static_cast<unsigned>(cut.getInt());
  if (!parts.windows.empty() || !whole.windows.empty() || target.isPartial() ||
      (gathers && source.isPartial()) || !sharding::isPrefix(whole.dims[dim], parts.dims[dim]))
    return std::nullopt;
  for (unsigned other = 0; other < parts.dims.size(); ++other)
    if (other != dim && parts.dims[other] != whole.dims[other])
      return std::nullopt;
  Ring ring{collective, gathers, 0, dim, 0, 0, from.getMesh(), {}, parts, {}, {}};
  ring.axes = sharding::removePrefix(whole.dims[dim], parts.dims[dim]);
  ring.devices = sharding::sizeOf(ring.axes);
  if (ring.devices < 2 || ring.devices > kMostTurns)
    return std::nullopt;
  if (!gathers) { // sums over exactly these axes
    if (sharding::sizeOf(source.partialAxes()) != ring.devices ||
        getElementTypeOrSelf(global).isInteger(1))
      return std::nullopt;
    for (const sharding::PartialAxis &partial : source.partial)
      if (partial.kind != sharding::ReduceKind::sum ||
          !llvm::any_of(ring.axes, [&](const auto &axis) { return axis.contains(partial.axis); }))
        return std::nullopt;
  }
  Value small = gathers ? collective->getOperand(0) : collective->getResult(0);
  Value large = gathers ? collective->getResult(0) : collective->getOperand(0);
  ring.block = cast<RankedTensorType>(small.getType()).getDimSize(dim);
  ring.length = cast<RankedTensorType>(large.getType()).getDimSize(dim);
  ring.global = withSize(global, dim, ring.block * sharding::sizeOf(parts.dims[dim]));
  // Several parts of a dimension are rings of their own where their blocks end together.
  bool fits = whole.dims[dim].empty() ? ring.length <= ring.padded() : ring.length == ring.padded();
  return fits && ring.block > 0 ? std::optional(ring) : std::nullopt;
}

/// Whether the devices of a ring have different elements of a value.
bool RingFinder::isCutAround(const Ring &ring, Value value) const {
  ShardingAttr attr = getSharding(value);
  if (!attr || attr.getMesh() != ring.mesh)
    return false;
  sharding::AxisList used = resolveVerified(attr, meshes, getGlobalType(value)).usedAxes();
  return llvm::all_of(ring.axes, [&](const sharding::AxisRef &axis) {
    return llvm::any_of(used, [&](const auto &each) { return each.contains(axis); });
  });
}

std::optional<Member> RingFinder::memberOf(const Ring &ring, linalg::LinalgOp product,
                                           OpOperand *operand) const {
  if (!linalg::isaContractionOpInterface(product) || product->getNumResults() != 1 ||
      !product.hasPureTensorSemantics() || product->getBlock() != ring.collective->getBlock())
    return std::nullopt;
  auto loop = dyn_cast<AffineDimExpr>(product.getMatchingIndexingMap(operand).getResult(ring.dim));
  if (!loop)
    return std::nullopt;
  unsigned position = loop.getPosition();
  for (OpOperand &other : product->getOpOperands())
    if (failed(dimOfLoop(product.getMatchingIndexingMap(&other), position)) ||
        (&other != operand && other.get() == operand->get()))
      return std::nullopt;
  bool sums = product.getIteratorTypesArray()[position] == utils::IteratorType::reduction;
  if (sums !=
      (product.getMatchingIndexingMap(product.getDpsInitOperand(0)).isFunctionOfDim(position) ==
       false))
    return std::nullopt;
  // Each device adds up blocks in its own order: of the same sum not all would have the same bits.
  if (ring.gathers && sums && !isCutAround(ring, product->getResult(0)))
    return std::nullopt;
  // Of 16-bit floats a sum is rounded once: blocks are added up in f32.
  if (isNarrow(product->getResult(0).getType()) &&
      (!ring.gathers || (sums && !llvm::all_of(*product.getBlock(), [](Operation &op) {
                           return isa<arith::ExtFOp, arith::MulFOp, arith::AddFOp, linalg::YieldOp>(
                               op);
                         }))))
    return std::nullopt;
  return Member{product, operand, position, sums};
}

/// Products that read the gathered value, and none of which needs another one of them; a gradient
/// is computed long after, from the whole value.
void RingFinder::addReaders(Ring &ring) {
  Value gathered = ring.collective->getResult(0);
  llvm::DenseSet<Operation *> later; // looked up, never iterated
  size_t seen = 0;
  auto reads = [&](Operation *op, auto &&isRead) {
    return op
        ->walk([&](Operation *inner) {
          return llvm::any_of(inner->getOperands(), isRead) ? WalkResult::interrupt()
                                                            : WalkResult::advance();
        })
        .wasInterrupted();
  };
  Block *block = ring.collective->getBlock();
  size_t users = 0;
  for (OpOperand &use : gathered.getUses())
    users += use.getOwner()->getBlock() == block;
  for (Operation *op = ring.collective->getNextNode(); op && seen < users; op = op->getNextNode()) {
    bool isLater = reads(op, [&](Value value) {
      Operation *source = value.getDefiningOp();
      return source && later.contains(source);
    });
    std::optional<Member> member;
    for (OpOperand &operand : op->getOpOperands())
      if (operand.get() == gathered) {
        ++seen;
        auto product = dyn_cast<linalg::LinalgOp>(op);
        if (product && !isLater && product.isDpsInput(&operand) && !member)
          member = memberOf(ring, product, &operand);
      }
    if (member)
      ring.members.push_back(*member);
    if (isLater || member)
      later.insert(op);
  }
  size_t uses = std::distance(gathered.use_begin(), gathered.use_end());
  ring.isReadWhole = uses > ring.members.size();
}

/// Seconds that a product adds to a turn: it, and copies of what it reads and writes of the loop.
double RingFinder::turnSeconds(const Ring &ring, const Member &member) const {
  auto turns = static_cast<double>(ring.devices);
  linalg::LinalgOp product = member.product;
  double iterations = 1, bytes = 0, copied = 0;
  for (int64_t extent : product.getStaticLoopRanges())
    iterations *= static_cast<double>(extent);
  for (OpOperand &operand : product->getOpOperands()) {
    bool isCut = dimOfLoop(product.getMatchingIndexingMap(&operand), member.loop)->has_value();
    double transferred = bytesOf(operand.get()) / (isCut ? turns : 1);
    bool isInit = product.isDpsInit(&operand);
    bytes += isInit && member.sums ? 2 * transferred : transferred;
    if (isCut && !(ring.gathers ? &operand == member.operand : isInit))
      copied += 2 * transferred;
  }
  std::string dtype;
  llvm::raw_string_ostream(dtype) << getElementTypeOrSelf(product->getOperand(0).getType());
  return topology.computeSeconds(iterations * operationsOf(product) / turns, bytes, dtype,
                                 devices) +
         copySeconds(copied);
}

/// Blocks arrive, or leave, one after the other while the device computes.
double RingFinder::secondsOf(const Ring &ring) const {
  auto turns = static_cast<double>(ring.devices);
  Value small = ring.gathers ? ring.collective->getOperand(0) : ring.collective->getResult(0);
  const sharding::Mesh &mesh = meshes.get(ring.mesh);
  sharding::Layout layout = sharding::makeLayout(ring.parts, shapeOf(ring.global));
  sharding::MovedTensor moved{bytesPerElement(getElementTypeOrSelf(small.getType())), layout,
                              layout};
  sharding::Traffic traffic =
      sharding::trafficOf(sharding::CollectiveKind::permute, ring.devices, mesh, mesh, {&moved, 1});
  double pass =
      topology.linksOf(mesh).seconds(mesh, ring.axes, sharding::CollectiveKind::permute, traffic);
  double turn = 0;
  for (const Member &member : ring.members)
    turn += turnSeconds(ring, member);
  if (ring.isReadWhole)
    turn += copySeconds(2 * bytesOf(small));
  if (ring.gathers) // the own block is there at once
    return std::max(turns * turn, (turns - 1) * pass + turn);
  // By halves; each takes a latency.
  double half = (pass + topology.linksOf(mesh).linkOf(mesh, ring.axes).alpha * 2) / 2;
  double each = ring.block > 1 ? std::max(2 * half, turn) : pass + turn;
  return turn + (turns - 1) * each + copySeconds(2 * bytesOf(small));
}

std::optional<Ring> RingFinder::find(Operation *op) {
  auto collective = cast<CollectiveOpInterface>(op);
  std::optional<Ring> ring = describe(collective);
  if (!ring)
    return std::nullopt;
  if (ring->gathers) {
    addReaders(*ring);
  } else if (Value sum = op->getOperand(0); sum.hasOneUse()) {
    auto product = sum.getDefiningOp<linalg::LinalgOp>();
    if (std::optional<Member> member;
        product && (member = memberOf(*ring, product, product.getDpsInitOperand(0))))
      ring->members.push_back(*member);
  }
  FailureOr<CommunicationCost> whole = costs.communicationOf(collective);
  if (ring->members.empty() || failed(whole) || whole->isLocal())
    return std::nullopt;
  if (always)
    return ring;
  double sending = whole->timing.seconds, computing = 0;
  for (const Member &member : ring->members)
    computing += costs.computeSeconds(member.product);
  double least = sending + computing - kLeastGainInParts * std::min(sending, computing);
  if (const Member &only = ring->members.front(); ring->members.size() == 1 && !ring->isReadWhole) {
    PartsCost parts = costInParts(only.product, op, ring->gathers ? only.operand : nullptr, costs);
    least = std::min(least, parts.seconds + copySeconds(parts.copiedBytes));
  }
  return secondsOf(*ring) < least ? ring : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Writing a ring
//===----------------------------------------------------------------------===//

/// The mesh in which the device after the one at a position is at this position.
FlatSymbolRefAttr RingWriter::nextMesh() {
  const sharding::Mesh &mesh = meshes.get(ring.mesh);
  std::vector<int64_t> ids = mesh.processIds.vec();
  for (const std::vector<int64_t> &group : sharding::deviceGroups(mesh, ring.axes))
    for (size_t i = 0; i < group.size(); ++i)
      ids[group[i]] = mesh.processIds[group[(i + 1) % group.size()]];
  for (auto known : module.getOps<ProcessMeshOp>())
    if (sharding::Mesh other = known.getMesh(); other.shape == mesh.shape &&
                                                other.axisNames == mesh.axisNames &&
                                                other.processIds.vec() == ids)
      return FlatSymbolRefAttr::get(known.getSymNameAttr());
  auto declared = lookupMesh(ring.collective, ring.mesh);
  OpBuilder top(declared);
  top.setInsertionPointAfter(declared);
  std::string name;
  for (int number = 1; name.empty() || SymbolTable::lookupSymbolIn(module, name); ++number)
    name =
        (ring.mesh.getValue() + "_ring" + (number > 1 ? llvm::Twine(number) : llvm::Twine())).str();
  auto made = ProcessMeshOp::create(top, declared.getLoc(), top.getStringAttr(name),
                                    declared.getShapeAttr(), declared.getDimNamesAttr(),
                                    top.getDenseI64ArrayAttr(ids));
  return FlatSymbolRefAttr::get(made.getSymNameAttr());
}

Value RingWriter::beginOf(int64_t turn) {
  if (begins.empty()) {
    OpBuilder::InsertionGuard guard(builder);
    // Before all products, which may come before the collective.
    Operation *first = ring.collective;
    for (const Member &member : ring.members)
      if (member.product->isBeforeInBlock(first))
        first = member.product;
    builder.setInsertionPoint(first);
    auto number = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(builder, loc, value);
    };
    Value device =
        AxisIndexOp::create(builder, loc, builder.getIndexType(), ring.mesh,
                            toIR(builder.getContext(), meshes.get(ring.mesh), ring.axes));
    for (int64_t turn = 0; turn < ring.devices; ++turn) {
      Value block = device;
      if (turn > 0) {
        Value before = arith::SubIOp::create(builder, loc, device, number(turn));
        Value after = arith::AddIOp::create(builder, loc, device, number(ring.devices - turn));
        Value isBefore =
            arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, device, number(turn));
        block = arith::SelectOp::create(builder, loc, isBefore, before, after);
      }
      begins.push_back(arith::MulIOp::create(builder, loc, block, number(ring.block)));
    }
  }
  return begins[turn % ring.devices];
}

Value RingWriter::passOn(Value block, int64_t size, int64_t turn) {
  MLIRContext *context = builder.getContext();
  const sharding::Mesh &mesh = meshes.get(ring.mesh);
  RankedTensorType global =
      withSize(ring.global, ring.dim, ring.global.getDimSize(ring.dim) / ring.block * size);
  ShardingAttr source = ShardingAttr::get(ring.mesh, mesh, ring.parts, context);
  ShardingAttr target = ShardingAttr::get(nextMesh(), mesh, ring.parts, context);
  auto op = PermuteOp::create(builder, loc, TypeRange{block.getType()}, ValueRange{block},
                              ring.mesh, toIR(context, mesh, ring.axes), DenseI64ArrayAttr(),
                              builder.getArrayAttr({source}), builder.getArrayAttr({target}),
                              builder.getArrayAttr({TypeAttr::get(global)}));
  if (Attribute reason = ring.collective->getAttr(DistDialect::kReason))
    op->setAttr(DistDialect::kReason, reason);
  op->setAttr(kPart, builder.getI64IntegerAttr(turn));
  setGlobalType(op->getResult(0), global);
  return op->getResult(0);
}

Value RingWriter::pointwise(ValueRange inputs, Type element,
                            llvm::function_ref<Value(OpBuilder &, ValueRange)> body) {
  auto type = cast<RankedTensorType>(inputs.front().getType());
  SmallVector<AffineMap> maps(inputs.size() + 1, builder.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), element);
  return linalg::GenericOp::create(builder, loc, TypeRange{empty.getType()}, inputs, empty, maps,
                                   loops,
                                   [&](OpBuilder &at, Location, ValueRange in) {
                                     linalg::YieldOp::create(at, loc, body(at, in));
                                   })
      .getResult(0);
}

Value RingWriter::add(Value a, Value b) {
  Type element = getElementTypeOrSelf(a.getType());
  return pointwise({a, b}, element, [&](OpBuilder &at, ValueRange in) -> Value {
    if (isa<FloatType>(element))
      return arith::AddFOp::create(at, loc, in[0], in[1]);
    return arith::AddIOp::create(at, loc, in[0], in[1]);
  });
}

/// The device's block, with zeros past the end of the tensor.
Value RingWriter::masked(Value block) {
  Type element = getElementTypeOrSelf(block.getType());
  Value begin = beginOf(0);
  return pointwise(block, element, [&](OpBuilder &at, ValueRange in) -> Value {
    Value index = linalg::IndexOp::create(at, loc, ring.dim);
    index = arith::AddIOp::create(at, loc, index, begin);
    Value length = arith::ConstantIndexOp::create(at, loc, ring.length);
    Value isInside = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::slt, index, length);
    Value zero = arith::ConstantOp::create(at, loc, at.getZeroAttr(element));
    return arith::SelectOp::create(at, loc, isInside, in[0], zero);
  });
}

/// A tensor of all blocks, with zeros behind the whole.
Value RingWriter::padded(Value value, unsigned dim) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getDimSize(dim) == ring.padded() || matchPattern(value, m_Constant()))
    return value;
  Value &made = paddedAlong[{value, dim}];
  if (made)
    return made;
  SmallVector<OpFoldResult> low(type.getRank(), builder.getIndexAttr(0)), high(low);
  high[dim] = builder.getIndexAttr(ring.padded() - type.getDimSize(dim));
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type.getElementType()));
  return made = tensor::PadOp::create(builder, loc, withSize(type, dim, ring.padded()), value, low,
                                      high, zero);
}

Value RingWriter::multiply(const Member &member, Value operand, Value begin, int64_t size,
                           Value sum) {
  linalg::LinalgOp product = member.product;
  SmallVector<Value> operands;
  for (OpOperand &each : product->getOpOperands()) {
    std::optional<unsigned> dim = *dimOfLoop(product.getMatchingIndexingMap(&each), member.loop);
    if (operand && &each == member.operand)
      operands.push_back(operand);
    else if (sum && product.isDpsInit(&each))
      operands.push_back(sum);
    else
      operands.push_back(dim ? sliceOf(builder, loc, padded(each.get(), *dim), *dim, begin, size)
                             : each.get());
  }
  Type type = operands.back().getType();
  Operation *made = nullptr;
  if (getElementTypeOrSelf(type) == getElementTypeOrSelf(product->getResult(0).getType())) {
    made = clone(builder, product, type, operands);
    for (StringRef name : {DistDialect::kGlobalType, DistDialect::kShardings})
      made->removeAttr(name);
  } else {
    made = linalg::GenericOp::create(
        builder, loc, TypeRange{type}, ValueRange(operands).drop_back(), operands.back(),
        product.getIndexingMapsArray(), product.getIteratorTypesArray(),
        [&](OpBuilder &at, Location, ValueRange in) {
          auto wide = [&](Value value) -> Value {
            return isNarrow(value.getType())
                       ? arith::ExtFOp::create(at, loc, at.getF32Type(), value).getResult()
                       : value;
          };
          Value term = arith::MulFOp::create(at, loc, wide(in[0]), wide(in[1]));
          linalg::YieldOp::create(at, loc, arith::AddFOp::create(at, loc, in[2], term).getResult());
        });
  }
  return made->getResult(0);
}

void RingWriter::replace(Operation *op, Value value) {
  if (value.getDefiningOp())
    setGlobalType(value, getGlobalType(op->getResult(0)));
  op->getResult(0).replaceAllUsesWith(value);
  op->erase();
}

void RingWriter::writeGather() {
  bool masks = ring.length < ring.padded() &&
               llvm::any_of(ring.members, [](const Member &member) { return member.sums; });
  beginOf(0);
  SmallVector<Value> blocks{ring.collective->getOperand(0)};
  if (masks)
    blocks[0] = masked(blocks[0]);
  // A block is sent on before it is multiplied.
  auto arrive = [&](int64_t turn) {
    if (turn < ring.devices && std::cmp_equal(turn, blocks.size()))
      blocks.push_back(passOn(blocks.back(), ring.block, turn));
  };
  if (ring.isReadWhole)
    for (int64_t turn = 1; turn < ring.devices; ++turn)
      arrive(turn);
  auto put = [&](Value block, Value all, unsigned dim, int64_t turn) {
    if (!all) {
      auto type = withSize(block.getType(), dim, ring.padded());
      all = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
    }
    return insertedAt(builder, loc, block, all, dim, beginOf(turn));
  };
  auto whole = [&](Value all, unsigned dim) {
    return ring.length == ring.padded()
               ? all
               : sliceOf(builder, loc, all, dim, builder.getIndexAttr(0), ring.length);
  };
  for (const Member &member : ring.members) {
    linalg::LinalgOp product = member.product;
    builder.setInsertionPoint(product);
    paddedAlong.clear(); // of another product, perhaps later
    loc = product.getLoc();
    Type type = product->getResult(0).getType();
    Value result;
    if (member.sums) {
      result = product.getDpsInitOperand(0)->get();
      if (isNarrow(type)) {
        Type f32 = builder.getF32Type();
        if (DenseFPElementsAttr splat; matchPattern(result, m_Constant(&splat)) && splat.isSplat())
          result = arith::ConstantOp::create(
              builder, loc,
              DenseElementsAttr::get(
                  cast<RankedTensorType>(type).clone(f32),
                  builder.getF32FloatAttr(splat.getSplatValue<APFloat>().convertToDouble())
                      .getValue()));
        else
          result = pointwise(result, f32, [&](OpBuilder &at, ValueRange in) -> Value {
            return arith::ExtFOp::create(at, loc, f32, in[0]);
          });
      }
      for (int64_t turn = 0; turn < ring.devices; ++turn) {
        arrive(turn + 1);
        result = multiply(member, blocks[turn], beginOf(turn), ring.block, result);
      }
      if (isNarrow(type))
        result = pointwise(result, getElementTypeOrSelf(type), [&](OpBuilder &at, ValueRange in) {
          return arith::TruncFOp::create(at, loc, getElementTypeOrSelf(type), in[0]).getResult();
        });
    } else {
      unsigned dim =
          **dimOfLoop(product.getMatchingIndexingMap(product.getDpsInitOperand(0)), member.loop);
      for (int64_t turn = 0; turn < ring.devices; ++turn) {
        arrive(turn + 1);
        Value part = multiply(member, blocks[turn], beginOf(turn), ring.block, {});
        result = put(part, result, dim, turn);
      }
      result = whole(result, dim);
    }
    replace(product, result);
  }
  if (ring.isReadWhole) {
    builder.setInsertionPoint(ring.collective);
    loc = ring.collective.getLoc();
    Value all;
    for (auto [turn, block] : llvm::enumerate(blocks)) // after the last block arrives
      all = put(block, all, ring.dim, static_cast<int64_t>(turn));
    replace(ring.collective, whole(all, ring.dim));
  } else {
    ring.collective->erase();
  }
}

void RingWriter::writeScatter() {
  const Member &member = ring.members.front();
  linalg::LinalgOp product = member.product;
  Value init = product.getDpsInitOperand(0)->get();
  bool startsAtZero = isIdentityFill(init, sharding::ReduceKind::sum);
  // Of each half: where it begins in a block, its size, and its sum so far.
  struct Half {
    int64_t from, size;
    Value sum;
  };
  SmallVector<Half, 2> halves;
  int64_t first = sharding::ceilDiv(ring.block, 2);
  for (auto [from, to] : {std::pair(int64_t(0), first), std::pair(first, ring.block)})
    if (from < to)
      halves.push_back({from, to - from, {}});
  for (int64_t turn = 1; turn <= ring.devices; ++turn)
    for (Half &half : halves) {
      Value begin = beginOf(turn);
      if (half.from > 0)
        begin = arith::AddIOp::create(builder, loc, begin,
                                      arith::ConstantIndexOp::create(builder, loc, half.from));
      Value sum = half.sum ? passOn(half.sum, half.size, turn - 1) : Value();
      if (sum && !startsAtZero)
        sum = add(sum, sliceOf(builder, loc, padded(init, ring.dim), ring.dim, begin, half.size));
      half.sum = multiply(member, {}, begin, half.size, sum);
    }
  Value result = halves.front().sum;
  if (halves.size() > 1) {
    auto type = cast<RankedTensorType>(ring.collective->getResult(0).getType());
    result = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
    for (const Half &half : halves)
      result =
          insertedAt(builder, loc, half.sum, result, ring.dim, builder.getIndexAttr(half.from));
  }
  replace(ring.collective, result);
  product->erase();
}

void RingWriter::write() {
  ring.gathers ? writeGather() : writeScatter();
}

/// Rings are found before any is written: costs are those of the function as it is.
static void run(func::FuncOp function, ModuleOp module, const MeshTable &meshes,
                const sharding::Topology &topology, bool always) {
  StepCosts costs(function, meshes, topology);
  RingFinder finder(meshes, costs, topology, meshDevicesOf(function), always);
  std::vector<Ring> rings;
  llvm::DenseSet<Operation *> taken; // looked up, never iterated
  auto add = [&](Operation *op) {
    std::optional<Ring> ring = finder.find(op);
    if (!ring || llvm::any_of(ring->members,
                              [&](const Member &member) { return taken.contains(member.product); }))
      return;
    for (const Member &member : ring->members)
      taken.insert(member.product);
    rings.push_back(std::move(*ring));
  };
  function.walk([&](AllGatherOp op) { add(op); });
  function.walk([&](ReduceScatterOp op) { add(op); });
  for (Ring &ring : rings)
    RingWriter(module, meshes, ring).write();
}

namespace {
struct DistRingProducts : dist::impl::DistRingProductsBase<DistRingProducts> {
  using DistRingProductsBase::DistRingProductsBase;

  void runOnOperation() override {
    FailureOr<CostOptions> cost = readCostOptions(getOperation(), "time", topology);
    if (failed(cost))
      return signalPassFailure();
    MeshTable meshes(getOperation());
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>())
      if (isLocalView(function) && function.getBody().hasOneBlock())
        run(function, getOperation(), meshes, cost->topology, always);
  }
};
} // namespace
