//===- Gemm.cpp - Contractions as matrix products -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Planning/Gemm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Limit on the steps for one contraction whose batch dimensions have no common stride. A step
/// costs about a microsecond; with more steps, copying the operands is cheaper.
static constexpr int64_t kMaxSteps = 64;

//===----------------------------------------------------------------------===//
// Bodies and types
//===----------------------------------------------------------------------===//

/// The source of an extension to the element type of the result, else the value.
static Value withoutExtension(Value value) {
  Operation *op = value.getDefiningOp();
  return isa_and_nonnull<arith::ExtFOp>(op) ? op->getOperand(0) : value;
}

bool dist::isMultiplyAdd(Block &body) {
  if (body.getNumArguments() != 3)
    return false;
  Value yielded = body.getTerminator()->getOperand(0);
  Operation *add = yielded.getDefiningOp();
  if (!isa_and_nonnull<arith::AddFOp, arith::AddIOp>(add))
    return false;
  Value out = body.getArgument(2);
  Value product = add->getOperand(0) == out ? add->getOperand(1) : add->getOperand(0);
  if (product == out || (add->getOperand(0) != out && add->getOperand(1) != out))
    return false;
  Operation *multiply = product.getDefiningOp();
  if (!isa_and_nonnull<arith::MulFOp, arith::MulIOp>(multiply))
    return false;
  Value x = withoutExtension(multiply->getOperand(0));
  Value y = withoutExtension(multiply->getOperand(1));
  Value a = body.getArgument(0), b = body.getArgument(1);
  return (x == a && y == b) || (x == b && y == a);
}

static Type elementOf(Value value) {
  return cast<ShapedType>(value.getType()).getElementType();
}

bool dist::reducesTwoTensors(linalg::LinalgOp op) {
  return op.getNumDpsInputs() == 2 && op.getNumDpsInits() == 1 && op.hasPureTensorSemantics() &&
         !op.hasDynamicShape() && op.getNumReductionLoops() > 0 &&
         llvm::all_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>);
}

/// Whether an op of any element types multiplies and adds two tensors, one of which is read several
/// times.
static bool multipliesTensors(linalg::LinalgOp op) {
  if (!reducesTwoTensors(op) || llvm::any_of(op.getIndexingMapsArray(), [](AffineMap map) {
        return !map.isProjectedPermutation();
      }))
    return false;
  // If neither operand has a loop of its own, the result is a row of dot products: nothing is read
  // twice, and a kernel fuses the op with its neighbors.
  AffineMap x = op.getIndexingMapsArray()[0], y = op.getIndexingMapsArray()[1];
  bool reuses = false;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    reuses |= x.isFunctionOfDim(loop) != y.isFunctionOfDim(loop);
  return reuses && isMultiplyAdd(*op.getBlock());
}

bool dist::isGemmLike(linalg::LinalgOp op) {
  if (!reducesTwoTensors(op))
    return false;
  Type a = elementOf(op->getOperand(0)), b = elementOf(op->getOperand(1));
  Type c = elementOf(op->getOperand(2));
  bool half = a.isF16() || a.isBF16();
  bool known = a.isF64() || a.isF32() || half || a.isInteger(64) || a.isInteger(32) ||
               a.isInteger(16) || a.isInteger(8);
  return known && a == b && (c == a || (half && c.isF32())) && multipliesTensors(op);
}

std::array<bool, 2> dist::widenedOperands(linalg::LinalgOp op) {
  if (!reducesTwoTensors(op))
    return {false, false};
  Type a = elementOf(op->getOperand(0)), b = elementOf(op->getOperand(1));
  Type c = elementOf(op->getOperand(2));
  auto fits = [&](Type type) {
    return type == c ||
           (isa<FloatType>(type) && type.getIntOrFloatBitWidth() < c.getIntOrFloatBitWidth());
  };
  if (a == b || !(c.isF32() || c.isF64()) || !fits(a) || !fits(b) || !multipliesTensors(op) ||
      !isWorthPacking(op.getStaticLoopRanges()))
    return {false, false};
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop) {
    unsigned readers = maps[0].isFunctionOfDim(loop) + maps[1].isFunctionOfDim(loop);
    if (readers < (maps[2].isFunctionOfDim(loop) ? 1 : 2)) // a sum over one operand, or a broadcast
      return {false, false};
  }
  return {a != c, b != c};
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

namespace {
/// Loops of a contraction that together form one index, with the distance between neighbors in A,
/// B and C (0 if the operand does not have them).
struct Dim {
  int64_t extent;
  std::array<int64_t, 3> stride;
  bool has(int operand) const { return stride[operand] != 0; }
};
} // namespace

/// Distance between neighbors along each loop in a dense row-major operand; 0 for absent loops.
static SmallVector<int64_t> stridesOf(AffineMap map, ArrayRef<int64_t> extents) {
  SmallVector<int64_t> strides(extents.size(), 0);
  int64_t distance = 1;
  for (AffineExpr expr : llvm::reverse(map.getResults())) {
    unsigned loop = cast<AffineDimExpr>(expr).getPosition();
    strides[loop] = distance;
    distance *= extents[loop];
  }
  return strides;
}

/// Merges neighboring indices that are nested in every operand.
static void merge(SmallVector<Dim> &dims, int by) {
  llvm::stable_sort(dims, [&](const Dim &x, const Dim &y) { return x.stride[by] > y.stride[by]; });
  SmallVector<Dim> merged;
  for (const Dim &dim : dims) {
    bool inside = !merged.empty();
    for (int operand = 0; operand < 3 && inside; ++operand)
      inside = merged.back().stride[operand] == dim.extent * dim.stride[operand];
    if (inside) {
      merged.back().extent *= dim.extent;
      merged.back().stride = dim.stride;
    } else {
      merged.push_back(dim);
    }
  }
  dims = merged;
}

/// Removes from `dims` the dimension with stride 1 in `operand` if `mustBeUnit`, else the longest;
/// empty if there is none. An empty list yields extent 1.
static std::optional<Dim> take(SmallVector<Dim> &dims, int operand, bool mustBeUnit) {
  if (dims.empty())
    return Dim{1, {0, 0, 0}};
  auto *best = dims.begin();
  for (auto *it = dims.begin(); it != dims.end(); ++it) {
    if (mustBeUnit ? it->stride[operand] == 1 : it->extent > best->extent)
      best = it;
  }
  if (mustBeUnit && best->stride[operand] != 1)
    return std::nullopt;
  Dim result = *best;
  dims.erase(best);
  return result;
}

/// The leading dimension of a matrix with `distance` elements between rows; any for at most 1 row.
static int64_t leading(int64_t distance, int64_t rows, int64_t columns) {
  return rows <= 1 ? std::max<int64_t>(columns, 1) : distance;
}

/// The form with m along `ms` (in A) and n along `ns` (in B); empty if C would not be row-major or
/// an operand has no unit stride.
static std::optional<GemmForm> orient(SmallVector<Dim> ms, SmallVector<Dim> ns, Dim k,
                                      SmallVector<Dim> batches, bool swapped) {
  GemmForm form;
  form.swapped = swapped;
  // C = A·B: n has unit stride in C. A column of C (no n at all) may have any stride.
  bool rowMajorB = false;
  std::optional<Dim> n = take(ns, 2, true);
  if (!n)
    return std::nullopt;
  if (n->extent == 1 || n->stride[1] == 1)
    rowMajorB = true;
  else if (k.extent != 1 && k.stride[1] != 1)
    return std::nullopt;
  bool rowMajorA = k.extent == 1 || k.stride[0] == 1;
  std::optional<Dim> m = take(ms, 0, !rowMajorA);
  if (!m)
    return std::nullopt;
  form.m = m->extent, form.n = n->extent, form.k = k.extent;
  form.transA = !rowMajorA, form.transB = !rowMajorB;
  form.ld[0] =
      rowMajorA ? leading(m->stride[0], form.m, form.k) : leading(k.stride[0], form.k, form.m);
  form.ld[1] =
      rowMajorB ? leading(k.stride[1], form.k, form.n) : leading(n->stride[1], form.n, form.k);
  form.ld[2] = leading(m->stride[2], form.m, form.n);
  // The remaining dimensions of m and n repeat the other operand.
  llvm::append_range(batches, ms);
  llvm::append_range(batches, ns);
  merge(batches, 2);
  std::optional<Dim> batch = take(batches, 2, false);
  form.batch = batch->extent;
  if (form.batch > 1)
    form.stride = batch->stride;
  for (const Dim &outer : batches) {
    if (static_cast<int64_t>(form.starts.size()) * outer.extent > kMaxSteps)
      return std::nullopt;
    std::vector<std::array<int64_t, 3>> starts;
    for (const std::array<int64_t, 3> &start : form.starts)
      for (int64_t i = 0; i < outer.extent; ++i)
        starts.push_back({start[0] + i * outer.stride[0], start[1] + i * outer.stride[1],
                          start[2] + i * outer.stride[2]});
    form.starts = std::move(starts);
  }
  // Rows must not overlap: a leading dimension is at least a row.
  if (form.ld[0] < (form.transA ? form.m : form.k) ||
      form.ld[1] < (form.transB ? form.k : form.n) || form.ld[2] < form.n)
    return std::nullopt;
  return form;
}

static SmallVector<Dim> exchanged(SmallVector<Dim> dims) {
  for (Dim &dim : dims)
    std::swap(dim.stride[0], dim.stride[1]);
  return dims;
}

std::optional<GemmForm> dist::matchGemm(ArrayRef<AffineMap> maps, ArrayRef<int64_t> extents) {
  std::array<SmallVector<int64_t>, 3> strides;
  for (int operand = 0; operand < 3; ++operand)
    strides[operand] = stridesOf(maps[operand], extents);
  SmallVector<Dim> batches, ms, ns, ks;
  for (auto [loop, extent] : llvm::enumerate(extents)) {
    if (extent == 0)
      return std::nullopt;
    if (extent == 1)
      continue;
    Dim dim{extent, {strides[0][loop], strides[1][loop], strides[2][loop]}};
    if (dim.has(0) && dim.has(1))
      (dim.has(2) ? batches : ks).push_back(dim);
    else if (dim.has(2) && (dim.has(0) || dim.has(1)))
      (dim.has(0) ? ms : ns).push_back(dim);
    else
      return std::nullopt; // a sum over one operand, or a broadcast into C
  }
  merge(batches, 2);
  merge(ms, 2);
  merge(ns, 2);
  merge(ks, 0);
  if (ks.size() > 1)
    return std::nullopt;
  Dim k = ks.empty() ? Dim{1, {1, 1, 0}} : ks.front();
  if (std::optional<GemmForm> form = orient(ms, ns, k, batches, false))
    return form;
  std::swap(k.stride[0], k.stride[1]);
  return orient(exchanged(ns), exchanged(ms), k, exchanged(batches), true);
}

std::optional<GemmForm> dist::matchGemm(linalg::LinalgOp op) {
  if (!isGemmLike(op))
    return std::nullopt;
  return matchGemm(op.getIndexingMapsArray(), op.getStaticLoopRanges());
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

SmallVector<unsigned> dist::gemmLoopsOf(AffineMap map) {
  return llvm::map_to_vector(
      map.getResults(), [](AffineExpr expr) { return cast<AffineDimExpr>(expr).getPosition(); });
}

bool dist::isWorthPacking(ArrayRef<int64_t> extents) {
  constexpr int64_t kFewestProducts = 4096;
  return ShapedType::getNumElements(extents) >= kFewestProducts;
}

std::optional<GemmLoops> dist::packGemm(const GemmLoops &loops, ArrayRef<int64_t> extents,
                                        MLIRContext *context) {
  // Rows of batch, m, k; batch, k, n; batch, m, n always form a gemm.
  SmallVector<unsigned> batch, m, n, k;
  for (unsigned loop = 0; loop < extents.size(); ++loop) {
    bool a = llvm::is_contained(loops[0], loop), b = llvm::is_contained(loops[1], loop),
         c = llvm::is_contained(loops[2], loop);
    if (a && b)
      (c ? batch : k).push_back(loop);
    else if (c && (a || b))
      (a ? m : n).push_back(loop);
    else
      return std::nullopt;
  }
  auto join = [](std::initializer_list<ArrayRef<unsigned>> lists) {
    SmallVector<unsigned> all;
    for (ArrayRef<unsigned> list : lists)
      llvm::append_range(all, list);
    return all;
  };
  GemmLoops rows = {join({batch, m, k}), join({batch, k, n}), join({batch, m, n})};
  std::optional<GemmLoops> best;
  int64_t least = 0;
  for (int choice = 1; choice < 8; ++choice) {
    GemmLoops tried = loops;
    SmallVector<AffineMap> maps;
    int64_t elements = 0;
    for (int i = 0; i < 3; ++i) {
      SmallVector<AffineExpr> exprs;
      if (choice & (1 << i)) {
        tried[i] = rows[i];
        int64_t size = 1;
        for (unsigned loop : rows[i])
          size *= extents[loop];
        elements += size;
      }
      for (unsigned loop : tried[i])
        exprs.push_back(getAffineDimExpr(loop, context));
      maps.push_back(AffineMap::get(extents.size(), 0, exprs, context));
    }
    if ((!best || elements < least) && matchGemm(maps, extents)) {
      best = tried;
      least = elements;
    }
  }
  return best;
}

std::array<bool, 2> dist::packedOperands(linalg::LinalgOp op) {
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  if (!isGemmLike(op) || !isWorthPacking(extents) || matchGemm(op))
    return {false, false};
  GemmLoops loops;
  for (auto [operandLoops, map] : llvm::zip_equal(loops, op.getIndexingMapsArray()))
    operandLoops = gemmLoopsOf(map);
  std::optional<GemmLoops> packed = packGemm(loops, extents, op.getContext());
  return {packed && (*packed)[0] != loops[0], packed && (*packed)[1] != loops[1]};
}

bool dist::hasWholeRows(const GemmForm &form) {
  return form.starts.size() == 1 && (form.m == 1 || form.ld[2] % form.n == 0) &&
         form.stride[2] % form.n == 0;
}
