//===- FormPhases.cpp - Convolutions of dilated tensors as steps ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each phase of a contraction is a separate rt.contraction that overwrites its
// elements of the result. Elements that no phase writes stay zero. Elements that
// later slices remove are not computed. A dilated operand is read before its
// dilation, and padded there, so it is as small as possible.
//
// Phases that differ by a constant step are one contraction with a loop more, as
// those of a transposed convolution whose windows do not overlap: its tiles are wider,
// and a line of the result is written once.
//
//===----------------------------------------------------------------------===//

#include "ContractionPhases.h"

#include "tessera/Codegen/Passes.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Rt/IR/Rt.h"
#include "tessera/Planning/Contraction.h"

namespace tessera::codegen {
#define GEN_PASS_DEF_CODEGENFORMPHASES
#include "tessera/Codegen/Passes.h.inc"
} // namespace tessera::codegen

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

namespace {

/// A phase as a contraction: element offsets of a, b and the result, and their strides by loop.
struct Contraction {
  SmallVector<int64_t> starts = SmallVector<int64_t>(3, 0), extents, strides[3];

  bool hasLoopsOf(const Contraction &other) const {
    return extents == other.extents && llvm::equal(strides, other.strides);
  }
};

class PhaseFormer {
public:
  explicit PhaseFormer(linalg::LinalgOp op) : op(op), builder(op) {}
  /// Replaces the op if phases save enough.
  void run(bool narrow);

private:
  bool findPhases();
  bool findOperand(unsigned index);
  bool hasTiles() const;
  Value paddedOperand(unsigned index);
  Value makeInit(bool isCovered);
  Contraction contractionOf(const Phase &phase, ArrayRef<Value> values);
  void emit();

  linalg::LinalgOp op;
  OpBuilder builder;
  SmallVector<int64_t> extents;
  SmallVector<PaddedView> chains[2];    ///< of the operands, from the operand inwards
  PaddedView views[3];                  ///< of operands and result
  SmallVector<int64_t> low[2], high[2]; ///< zeros around the operands
  SmallVector<Phase> phases;
};

} // namespace

/// Bounds that are not implied by another one of the same operand.
static SmallVector<Bound> essential(ArrayRef<Bound> bounds) {
  SmallVector<Bound> kept;
  for (auto [index, bound] : llvm::enumerate(bounds))
    if (llvm::none_of(bounds.drop_front(index + 1),
                      [&](const Bound &inner) { return bound.followsFrom(inner); }))
      kept.push_back(bound);
  return kept;
}

bool PhaseFormer::findPhases() {
  SmallVector<Bound> bounds;
  bool isDilated = false;
  for (unsigned i = 0; i < 2; ++i) {
    chains[i] = paddedViews(op->getOperand(i), op.getIndexingMapsArray()[i]);
    if (chains[i].empty())
      return false;
    llvm::append_range(bounds, essential(chains[i].back().bounds));
  }
  if (bounds.empty())
    return false;
  phases = phasesOf(extents, bounds);
  isDilated = llvm::any_of(bounds, [](const Bound &bound) { return bound.place.divisor > 1; });
  int64_t all = 1, taken = 0;
  for (int64_t extent : extents)
    all *= extent;
  for (const Phase &phase : phases)
    taken += iterationsOf(phase);
  // Separate steps must save a tenth. A single step must save a third, since a gemm is faster for
  // the same products.
  bool isSplit = !phases.empty() && llvm::any_of(phases.front(), [](const LoopRange &range) {
    return range.step > 1;
  });
  if (phases.empty() || (!isDilated && taken > all - all / (isSplit ? 10 : 3)))
    return false;
  views[2] = cutView(op->getResult(0), op.getIndexingMapsArray()[2]);
  if (views[2].places.empty())
    return false;
  bool isZero =
      isa_and_nonnull<linalg::FillOp, tensor::EmptyOp>(op.getDpsInits()[0].getDefiningOp());
  SmallVector<Phase> cut = phases;
  llvm::erase_if(cut, [&](Phase &phase) { return !shorten(phase, views[2].bounds); });
  bool isCut = isZero && !cut.empty() && llvm::all_of(cut, [&](const Phase &phase) {
                 return llvm::all_of(views[2].bounds, [&](const Bound &bound) {
                   return holds(bound, phase) == Holds::always;
                 });
               });
  if (isCut)
    phases = std::move(cut);
  else
    views[2] = paddedViews(op->getResult(0), op.getIndexingMapsArray()[2]).front();
  return true;
}

/// Chooses the tensor from which an operand is read: the innermost one padded with the remaining
/// multiplied zeros, or the innermost one in memory that has them.
bool PhaseFormer::findOperand(unsigned index) {
  ArrayRef<PaddedView> chain = chains[index];
  const PaddedView &inner = chain.back();
  auto isOpen = [&](const Bound &bound) {
    return llvm::any_of(phases,
                        [&](const Phase &phase) { return holds(bound, phase) != Holds::always; });
  };
  SmallVector<Bound> extentsOfInner;
  auto type = cast<RankedTensorType>(inner.value.getType());
  for (auto [d, place] : llvm::enumerate(inner.places))
    extentsOfInner.push_back({place, type.getDimSize(d)});
  size_t firstOpen = 0; // bounds before it hold
  bool isInnerEnough = true;
  while (firstOpen < inner.bounds.size() && !isOpen(inner.bounds[firstOpen]))
    ++firstOpen;
  for (const Bound &bound : inner.bounds)
    isInnerEnough &= !isOpen(bound) || llvm::any_of(extentsOfInner, [&](const Bound &extent) {
      return bound.followsFrom(extent);
    });
  bool isDilated = llvm::any_of(inner.bounds, [](const Bound &b) { return b.place.divisor > 1; });
  bool isOpenInside = firstOpen < inner.bounds.size();
  const PaddedView *chosen = &inner;
  if (isOpenInside && !(isDilated && isInnerEnough))
    for (const PaddedView &view : chain)
      if (view.bounds.size() <= firstOpen)
        chosen = &view;
  views[index] = *chosen;
  auto shape = cast<RankedTensorType>(views[index].value.getType()).getShape();
  low[index].assign(shape.size(), 0);
  high[index].assign(shape.size(), 0);
  for (const Phase &phase : phases)
    for (auto [d, place] : llvm::enumerate(views[index].places)) {
      std::optional<PhaseAddress> address = addressIn(place, phase);
      if (!address)
        return false;
      int64_t least = address->start, most = least;
      for (auto [stride, range] : llvm::zip_equal(address->strides, phase))
        (stride < 0 ? least : most) += stride * (range.count - 1);
      low[index][d] = std::max(low[index][d], -least);
      high[index][d] = std::max(high[index][d], most - shape[d] + 1);
    }
  return true;
}

/// Whether each phase fills tiles, and no two phases write the same element. Tiles of few rows are
/// filled if there are many columns, as for images of three channels.
bool PhaseFormer::hasTiles() const {
  constexpr int64_t kFewest = 8, kFewestRows = 2, kManyColumns = 64;
  auto depends = [&](unsigned operand, unsigned loop) {
    return llvm::any_of(views[operand].places,
                        [&](const Place &place) { return place.terms[loop] != 0; });
  };
  SmallVector<SmallVector<int64_t>> seen;
  for (const Phase &phase : phases) {
    int64_t m = 1, n = 1, k = 1;
    SmallVector<int64_t> key;
    for (auto [loop, range] : llvm::enumerate(phase)) {
      bool a = depends(0, loop), b = depends(1, loop), c = depends(2, loop);
      if (!c)
        k *= range.count;
      else if (a != b)
        (a ? m : n) *= range.count;
      if (c && range.step > 1)
        key.push_back(range.begin % range.step);
    }
    int64_t rows = std::min(m, n), columns = std::max(m, n);
    bool isFilled = rows >= kFewest || (rows >= kFewestRows && columns >= kManyColumns);
    if (!isFilled || k < kFewest || llvm::is_contained(seen, key))
      return false;
    seen.push_back(std::move(key));
  }
  return true;
}

/// The tensor of an operand, with zeros around it.
Value PhaseFormer::paddedOperand(unsigned index) {
  Value value = views[index].value;
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape;
  SmallVector<OpFoldResult> offsets, sizes,
      steps(type.getRank(), OpFoldResult(builder.getIndexAttr(1)));
  for (auto [extent, before, after] : llvm::zip_equal(type.getShape(), low[index], high[index])) {
    shape.push_back(before + extent + after);
    offsets.push_back(builder.getIndexAttr(before));
    sizes.push_back(builder.getIndexAttr(extent));
  }
  if (llvm::equal(shape, type.getShape()))
    return value;
  Location loc = op.getLoc();
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type.getElementType()));
  Value empty = tensor::EmptyOp::create(builder, loc, shape, type.getElementType());
  Value zeros = linalg::FillOp::create(builder, loc, zero, empty).getResult(0);
  for (auto [place, before] : llvm::zip_equal(views[index].places, low[index]))
    place.constant += before * place.divisor;
  return tensor::InsertSliceOp::create(builder, loc, value, zeros, offsets, sizes, steps);
}

/// The init of the first phase: undefined if the phases write everything.
Value PhaseFormer::makeInit(bool isCovered) {
  Value init = op.getDpsInits()[0];
  if (views[2].value == op->getResult(0) &&
      !(isCovered && isa_and_nonnull<linalg::FillOp>(init.getDefiningOp())))
    return init;
  auto type = cast<RankedTensorType>(views[2].value.getType());
  Value empty =
      tensor::EmptyOp::create(builder, op.getLoc(), type.getShape(), type.getElementType());
  if (isCovered)
    return empty;
  Value zero =
      arith::ConstantOp::create(builder, op.getLoc(), builder.getZeroAttr(type.getElementType()));
  return linalg::FillOp::create(builder, op.getLoc(), zero, empty).getResult(0);
}

/// A phase of the tensors that it reads and writes.
Contraction PhaseFormer::contractionOf(const Phase &phase, ArrayRef<Value> values) {
  Contraction result;
  for (unsigned i = 0; i < 3; ++i) {
    SmallVector<int64_t> all(phase.size(), 0);
    ArrayRef<int64_t> shape = cast<RankedTensorType>(values[i].getType()).getShape();
    int64_t distance = 1;
    for (size_t d = shape.size(); d-- > 0; distance *= shape[d]) {
      PhaseAddress address = *addressIn(views[i].places[d], phase);
      result.starts[i] += address.start * distance;
      for (auto [stride, along] : llvm::zip_equal(all, address.strides))
        stride += along * distance;
    }
    for (auto [range, stride] : llvm::zip_equal(phase, all))
      if (range.count > 1)
        result.strides[i].push_back(stride);
  }
  for (const LoopRange &range : phase)
    if (range.count > 1)
      result.extents.push_back(range.count);
  return result;
}

/// Replaces each `count` consecutive contractions by one with a loop over them, if all have the
/// same loops, and their starts are a constant distance apart in one factor and in the result.
/// Returns whether they are.
static bool join(std::vector<Contraction> &all, size_t count) {
  if (all.size() % count != 0)
    return false;
  SmallVector<int64_t> step;
  for (size_t i = 0; i < 3; ++i)
    step.push_back(all[1].starts[i] - all[0].starts[i]);
  if ((step[0] == 0) == (step[1] == 0) || step[2] == 0)
    return false;
  std::vector<Contraction> joined;
  for (auto [index, one] : llvm::enumerate(all)) {
    const Contraction &first = all[index - index % count];
    auto isAt = [&](size_t i) {
      return one.starts[i] == first.starts[i] + static_cast<int64_t>(index % count) * step[i];
    };
    if (!one.hasLoopsOf(all.front()) || !isAt(0) || !isAt(1) || !isAt(2))
      return false;
    if (index % count != 0)
      continue;
    joined.push_back(one);
    joined.back().extents.push_back(static_cast<int64_t>(count));
    for (size_t i = 0; i < 3; ++i)
      joined.back().strides[i].push_back(step[i]);
  }
  all = std::move(joined);
  return true;
}

/// Joins phases; those of the last loop that is divided follow each other.
static void joinAll(std::vector<Contraction> &all) {
  for (bool changed = true; changed && all.size() > 1;) {
    changed = false;
    for (size_t count = all.size(); count > 1 && !changed; --count)
      changed = join(all, count);
  }
}

void PhaseFormer::emit() {
  Value a = paddedOperand(0), b = paddedOperand(1);
  int64_t written = 0;
  for (const Phase &phase : phases) {
    int64_t count = 1;
    for (auto [loop, range] : llvm::enumerate(phase))
      if (llvm::any_of(views[2].places, [&](const Place &p) { return p.terms[loop] != 0; }))
        count *= range.count;
    written += count;
  }
  bool isNew =
      isa_and_nonnull<linalg::FillOp, tensor::EmptyOp>(op.getDpsInits()[0].getDefiningOp());
  Value replaced = views[2].value;
  Value result = makeInit(written == cast<RankedTensorType>(replaced.getType()).getNumElements());
  std::vector<Contraction> contractions;
  for (const Phase &phase : phases)
    contractions.push_back(contractionOf(phase, {a, b, replaced}));
  joinAll(contractions);
  for (const Contraction &one : contractions)
    result = rt::ContractionOp::create(builder, op.getLoc(), result.getType(), a, b, result,
                                       one.starts, one.extents, one.strides[0], one.strides[1],
                                       one.strides[2], isNew);
  Operation *last = replaced.getDefiningOp();
  replaced.replaceAllUsesWith(result);
  while (last != op) {
    Operation *before = last->getOperand(0).getDefiningOp();
    last->erase();
    last = before;
  }
  op->erase();
}

void PhaseFormer::run(bool narrow) {
  if (!dist::isSumOfProducts(op, narrow))
    return;
  extents = op.getStaticLoopRanges();
  if (findPhases() && findOperand(0) && findOperand(1) && hasTiles())
    emit();
}

namespace {
struct CodegenFormPhases : codegen::impl::CodegenFormPhasesBase<CodegenFormPhases> {
  using CodegenFormPhasesBase::CodegenFormPhasesBase;

  void runOnOperation() override {
    if (!dist::isLocalView(getOperation()))
      return;
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    for (linalg::LinalgOp op : ops)
      PhaseFormer(op).run(narrow);
  }
};
} // namespace
