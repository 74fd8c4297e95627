//===- Fuse.cpp - Group ops that become one kernel ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelNames.h"
#include "Recompute.h"
#include "StepOps.h"
#include "tessera/Codegen/Passes.h"
#include "tessera/Dialect/Dist/IR/Pipeline.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Ext/IR/ExtDialect.h"
#include "tessera/Fusion/FuseGraph.h"

#include "mlir/IR/Matchers.h"

namespace tessera::codegen {
#define GEN_PASS_DEF_CODEGENFUSE
#include "tessera/Codegen/Passes.h.inc"
} // namespace tessera::codegen

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

namespace {

/// Moves ops into a group, with copies of the scalars and fills that they use from outside.
class GroupBuilder {
public:
  GroupBuilder(ArrayRef<Operation *> members, Operation *before);
  /// For an existing group: copies the values that it captures.
  explicit GroupBuilder(rt::GroupOp group) : group(group), copies(group.getContext()) {}
  void build();

private:
  /// The value inside the group for one from outside.
  Value inside(Value value);

  ArrayRef<Operation *> members;
  rt::GroupOp group;
  OpBuilder copies; ///< at the group's start, in front of the members
  llvm::DenseMap<Value, Value> copied;
};

} // namespace

/// Results of members with other users, in order.
static SmallVector<Value> resultsOf(ArrayRef<Operation *> members) {
  llvm::SmallDenseSet<Operation *> set(members.begin(), members.end());
  Block *block = members.front()->getBlock();
  SmallVector<Value> results;
  for (Operation *op : members)
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) {
            return !set.contains(block->findAncestorOpInBlock(*user));
          }))
        results.push_back(result);
  return results;
}

/// Whether the operand is in memory: a factor of a contraction, or what is scanned or sorted.
static bool isInMemory(OpOperand &operand) {
  return (isa<rt::ContractionOp>(operand.getOwner()) && operand.getOperandNumber() < 2) ||
         isa<ext::ScanOp, ext::SortOp>(operand.getOwner());
}

GroupBuilder::GroupBuilder(ArrayRef<Operation *> members, Operation *before)
    : members(members), copies(before->getContext()) {
  OpBuilder builder(before);
  SmallVector<Location> locations;
  for (Operation *op : members)
    locations.push_back(op->getLoc());
  SmallVector<Value> results = resultsOf(members);
  group = rt::GroupOp::create(builder, builder.getFusedLoc(locations),
                              TypeRange(ValueRange(results)), describe(members));
  Block &body = group.getBody().emplaceBlock();
  OpBuilder end = OpBuilder::atBlockEnd(&body);
  rt::YieldOp::create(end, group.getLoc(), results);
}

Value GroupBuilder::inside(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || group->isAncestor(op))
    return value;
  StepKind kind = classify(op);
  if (kind != StepKind::scalar && kind != StepKind::free)
    return value;
  // Each user of a fill gets its own buffer.
  bool once = kind == StepKind::scalar || isa<arith::ConstantOp>(op);
  if (Value known = once ? copied.lookup(value) : Value())
    return known;
  IRMapping mapping;
  for (Value operand : op->getOperands())
    mapping.map(operand, inside(operand));
  Value result = copies.clone(*op, mapping)->getResult(cast<OpResult>(value).getResultNumber());
  if (once)
    copied[value] = result;
  return result;
}

void GroupBuilder::build() {
  Operation *yield = group.getBody().front().getTerminator();
  for (Operation *op : members)
    op->moveBefore(yield);
  copies.setInsertionPointToStart(&group.getBody().front());
  group.getBody().walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      if (!isInMemory(operand))
        operand.set(inside(operand.get()));
  });
  for (auto [result, made] : llvm::zip_equal(group.getResults(), yield->getOperands()))
    made.replaceUsesWithIf(result,
                           [&](OpOperand &use) { return !group->isAncestor(use.getOwner()); });
}

/// Whether a gemm starts from zero, so that the fill is not a step.
static bool isZeroFill(linalg::FillOp fill) {
  return matchPattern(fill.getInputs()[0], m_Zero()) ||
         matchPattern(fill.getInputs()[0], m_AnyZeroFloat());
}

/// Whether a step keeps elements of its init that it does not write.
static bool keepsInit(Operation *op) {
  auto contraction = dyn_cast<rt::ContractionOp>(op);
  return contraction && contraction.getOverwrite();
}

/// Fills with other uses than in kernels or as a gemm's zero init are kernels.
static void groupFills(Block &block) {
  for (auto fill : llvm::make_early_inc_range(block.getOps<linalg::FillOp>())) {
    auto staysFree = [&](OpOperand &use) {
      auto dps = dyn_cast<DestinationStyleOpInterface>(use.getOwner());
      return dps && dps.isDpsInit(&use) && classify(dps) == StepKind::gemm && isZeroFill(fill) &&
             !keepsInit(dps);
    };
    if (llvm::all_of(fill->getUses(), staysFree))
      continue;
    auto copy = cast<linalg::FillOp>(OpBuilder(fill).clone(*fill));
    fill.getResult(0).replaceUsesWithIf(copy.getResult(0),
                                        [&](OpOperand &use) { return !staysFree(use); });
    Operation *member = copy;
    GroupBuilder(member, copy).build();
  }
}

/// Makes kernels of contractions. Those that write to one result in turn (phases) are one kernel.
static void groupContractions(Block &block) {
  SmallVector<SmallVector<Operation *>> chains;
  llvm::SmallDenseMap<Operation *, size_t> chainOf;
  for (auto op : block.getOps<rt::ContractionOp>()) {
    Operation *before = op.getInit().getDefiningOp();
    auto known = chainOf.find(before);
    bool continues = known != chainOf.end() && before->hasOneUse() &&
                     op.getA().getDefiningOp() != before && op.getB().getDefiningOp() != before;
    if (!continues)
      chains.emplace_back();
    size_t chain = continues ? known->second : chains.size() - 1;
    chains[chain].push_back(op);
    chainOf[op] = chain;
  }
  for (const SmallVector<Operation *> &chain : chains)
    GroupBuilder(chain, chain.back()).build();
}

static void eraseUnused(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

static dist::FuseKind fuseKindOf(Operation *op) {
  if (op->hasTrait<ext::KernelOp>())
    return dist::FuseKind::alone;
  StepKind kind = classify(op);
  if (kind == StepKind::compute)
    return dist::FuseKind::kernel;
  bool communicates =
      kind == StepKind::other && !isa<rt::GroupOp, dist::AxisIndexOp, dist::SegmentOp>(op);
  return communicates ? dist::FuseKind::ordered : dist::FuseKind::alone;
}

static void fuseBlock(Block &block, const CodegenFuseOptions &options) {
  for (Operation &op : block)
    if (!isa<rt::GroupOp, linalg::LinalgOp>(op))
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          if (!isa<dist::StartOp>(op))
            fuseBlock(inner, options);
  eraseUnused(block);
  if (options.contractions)
    groupContractions(block);
  for (auto group : block.getOps<rt::GroupOp>()) // its constants may be outside
    GroupBuilder(group).build();
  dist::FuseGraph graph(block, options.maxOps, fuseKindOf);
  if (options.fuse)
    graph.fuse();
  if (options.fuse && options.sums)
    graph.joinSums();
  Operation *terminator = block.getTerminator();
  std::vector<std::vector<Operation *>> groups = graph.order();
  if (options.fuse && options.recompute > 0)
    recomputeAcrossGroups(groups, options.recompute, options.recomputedFunctions);
  for (const std::vector<Operation *> &members : groups) {
    if (classify(members.front()) == StepKind::compute)
      GroupBuilder(members, terminator).build();
    else
      members.front()->moveBefore(terminator);
  }
  eraseUnused(block);
  groupFills(block);
  eraseUnused(block);
}

namespace {
struct CodegenFuse : codegen::impl::CodegenFuseBase<CodegenFuse> {
  using CodegenFuseBase::CodegenFuseBase;
  void runOnOperation() override {
    if (dist::isLocalView(getOperation()))
      fuseBlock(getOperation().front(),
                {maxOps, fuse, sums, contractions, recompute, recomputedFunctions});
  }
};
} // namespace
