//===- DistAttributes.cpp - Meaning of shardings --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Limits.h"

#include "tessera/Dialect/Dist/IR/AttributeSyntax.h"
#include "tessera/Dialect/Dist/IR/Dist.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Of windows: products with the number of devices do not overflow.
static constexpr int64_t kMaxExtent = int64_t(1) << 40;

#include "tessera/Dialect/Dist/IR/DistEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "tessera/Dialect/Dist/IR/DistAttributes.cpp.inc"

void DistDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "tessera/Dialect/Dist/IR/DistAttributes.cpp.inc"
      >();
}

sharding::ReduceKind dist::toAlgebra(ReduceKind kind) {
  return static_cast<sharding::ReduceKind>(kind);
}

ReduceKind dist::toIR(sharding::ReduceKind kind) {
  return static_cast<ReduceKind>(kind);
}

//===----------------------------------------------------------------------===//
// Meaning
//===----------------------------------------------------------------------===//

static bool far(int64_t value) {
  return value < -kMaxExtent || value > kMaxExtent;
}

static sharding::Window toAlgebra(WindowAttr window) {
  return {window.getDim(),     window.getStep(),  window.getOffset(), window.getLength(),
          window.getDivisor(), window.getBegin(), window.getStride(), window.getCount()};
}

namespace {

std::string textOf(WindowAttr window) {
  std::string text = "window ";
  llvm::raw_string_ostream os(text);
  printWindow(os, window);
  return text;
}

/// Converts one attribute to the algebra's value; reports the first violated rule.
class Resolver {
public:
  Resolver(ShardingAttr attr, const sharding::Mesh &mesh, Type type,
           llvm::function_ref<InFlightDiagnostic()> emitError)
      : attr(attr), mesh(mesh), tensor(dyn_cast<RankedTensorType>(type)), type(type),
        emitError(emitError) {}

  FailureOr<sharding::TensorSharding> run() {
    if (!tensor) // (S10)
      return emitError() << "only ranked tensors have shardings, not " << type << "";
    int64_t elements = 1;
    for (int64_t extent : tensor.getShape()) { // (S11)
      if (extent > kMaxElements || (extent > 0 && elements > kMaxElements / extent))
        return emitError() << tensor
                           << " has more than 2^48 elements, the maximum of a sharded tensor";
      elements *= std::max<int64_t>(extent, 1);
    }
    result.dims.resize(tensor.getRank());
    if (failed(attr.getByDim() ? resolveByDim() : resolveByAxis()) || failed(checkAxes()) ||
        failed(checkPartials()))
      return failure();
    return sharding::canonical(result);
  }

private:
  LogicalResult resolveByAxis() {
    if (static_cast<int64_t>(attr.getPlacements().size()) > mesh.numAxes()) // (S2)
      return emitError() << attr << " has " << attr.getPlacements().size() << " placements, mesh '"
                         << attr.getMesh().getValue() << "' has " << mesh.numAxes()
                         << " axes; give at most one placement per axis";
    SmallVector<SmallVector<std::pair<int64_t, sharding::AxisRef>>> ordered(tensor.getRank());
    for (int64_t axis = 0; axis < mesh.numAxes(); ++axis) {
      sharding::AxisRef ref = sharding::AxisRef::full(mesh, axis);
      if (axis >= static_cast<int64_t>(attr.getPlacements().size())) {
        result.open.push_back(ref); // omitted placements are left to the compiler
        continue;
      }
      PlacementAttr placement = attr.getPlacements()[axis];
      switch (placement.getKind()) {
      case PlacementKind::replicate:
        break;
      case PlacementKind::open:
        result.open.push_back(ref);
        break;
      case PlacementKind::partial:
        result.partial.push_back({ref, toAlgebra(placement.getReduction())});
        break;
      case PlacementKind::shard: {
        int64_t rank = tensor.getRank(), dim = placement.getDim();
        if (dim < -rank || dim >= rank) // (S3)
          return emitError() << "shard(" << dim << ") of a rank-" << rank << " tensor " << tensor
                             << ": the dimension must be in [" << -rank << ", " << rank << ")";
        ordered[dim < 0 ? dim + rank : dim].push_back({placement.getOrder(), ref});
        break;
      }
      }
    }
    for (auto [dim, axes] : llvm::enumerate(ordered)) {
      bool any = llvm::any_of(axes, [](auto &entry) { return entry.first >= 0; });
      llvm::stable_sort(axes, [](auto &a, auto &b) { return a.first < b.first; });
      for (auto [position, entry] : llvm::enumerate(axes)) {
        if (any && entry.first != static_cast<int64_t>(position)) // (S6)
          return emitError() << "the axes of dimension " << dim << " in " << attr
                             << " need order = 0, 1, … each once, or no order at all";
        result.dims[dim].push_back(entry.second);
      }
    }
    return success();
  }

  LogicalResult resolveByDim() {
    if (static_cast<int64_t>(attr.getDims().size()) != tensor.getRank()) // (S9)
      return emitError() << attr << " has " << attr.getDims().size() << " dimensions, the tensor "
                         << tensor << " has " << tensor.getRank();
    for (auto [dim, axes] : llvm::enumerate(attr.getDims())) {
      FailureOr<sharding::AxisList> list = resolveAxes(axes, mesh, emitError);
      if (failed(list))
        return failure();
      result.dims[dim] = std::move(*list);
    }
    auto single = [&](AxisRefAttr axis) {
      return resolveAxes(AxisListAttr::get(attr.getContext(), {axis}), mesh, emitError);
    };
    for (PartialAttr partial : attr.getPartial()) {
      FailureOr<sharding::AxisList> axis = single(partial.getAxis());
      if (failed(axis))
        return failure();
      result.partial.push_back({axis->front(), toAlgebra(partial.getReduction())});
    }
    for (AxisRefAttr open : attr.getOpen()) {
      FailureOr<sharding::AxisList> axis = single(open);
      if (failed(axis))
        return failure();
      result.open.push_back(axis->front());
    }
    for (WindowAttr window : attr.getWindows()) {
      bool valid = window.getDim() >= 0 && window.getDim() < tensor.getRank() &&
                   window.getLength() >= 0 && !far(window.getStep()) && !far(window.getOffset()) &&
                   !far(window.getLength());
      if (!valid)
        return emitError() << textOf(window) << " of " << tensor
                           << ": the dimension must be in [0, " << tensor.getRank()
                           << "), the length in [0, 2^40], step and offset in "
                           << "[-2^40, 2^40]";
      int64_t extent = tensor.getDimSize(window.getDim());
      bool selects = window.getCount() >= 0;
      bool inside = selects ? window.getBegin() >= 0 && window.getStride() > 0 &&
                                  window.getCount() <= extent &&
                                  (window.getCount() == 0 ||
                                   (window.getBegin() < extent &&
                                    window.getCount() - 1 <=
                                        (extent - 1 - window.getBegin()) / window.getStride()))
                            : window.getBegin() == 0 && window.getStride() == 1;
      if (window.getDivisor() < 1 || far(window.getDivisor()) || window.getCount() < -1 || !inside)
        return emitError() << textOf(window) << " of " << tensor
                           << ": the divisor is positive, and the "
                           << "selected elements begin, begin + stride, ... must be in [0, "
                           << extent << ")";
      result.windows.push_back(toAlgebra(window));
    }
    return success();
  }

  LogicalResult checkAxes() {
    sharding::AxisList all = result.usedAxes();
    all.insert(all.end(), result.open.begin(), result.open.end());
    for (size_t i = 0; i < all.size(); ++i) // (S4)
      for (size_t j = i + 1; j < all.size(); ++j)
        if (all[i].overlaps(all[j]) || (all[i].axis == all[j].axis && mesh.shape[all[i].axis] == 1))
          return emitError() << "mesh axis " << sharding::toString(mesh, all[j])
                             << " is used twice in " << attr << "; an axis cuts one dimension once";
    return success();
  }

  LogicalResult checkPartials() {
    for (const sharding::PartialAxis &part : result.partial) {
      auto isSumLike = [](sharding::ReduceKind kind) {
        return kind == sharding::ReduceKind::sum || kind == sharding::ReduceKind::avg;
      };
      sharding::ReduceKind first = result.partial.front().kind;
      if (part.kind != first && !(isSumLike(part.kind) && isSumLike(first))) // (S7)
        return emitError() << "partial over two axes with different reductions, "
                           << sharding::toString(first) << " and " << sharding::toString(part.kind)
                           << ", in " << attr << "; only sum and avg can be combined";
      if (part.kind == sharding::ReduceKind::avg &&
          !isa<FloatType>(tensor.getElementType())) // (S8)
        return emitError() << "partial(avg) of " << tensor
                           << ": integers have no average; use partial(sum)";
    }
    return success();
  }

  ShardingAttr attr;
  const sharding::Mesh &mesh;
  RankedTensorType tensor;
  Type type;
  llvm::function_ref<InFlightDiagnostic()> emitError;
  sharding::TensorSharding result;
};

} // namespace

FailureOr<sharding::TensorSharding>
ShardingAttr::resolve(const sharding::Mesh &mesh, Type type,
                      llvm::function_ref<InFlightDiagnostic()> emitError) const {
  return Resolver(*this, mesh, type, emitError).run();
}

FailureOr<sharding::AxisList>
dist::resolveAxes(AxisListAttr axes, const sharding::Mesh &mesh,
                  llvm::function_ref<InFlightDiagnostic()> emitError) {
  sharding::AxisList result;
  for (AxisRefAttr axis : axes.getAxes()) {
    int64_t index = mesh.axisIndex(axis.getName().getValue());
    if (index < 0) // (S5)
      return emitError() << "mesh '" << mesh.name << "' has no axis '" << axis.getName().getValue()
                         << "'; its axes are '" << llvm::join(mesh.axisNames, "', '") << "'";
    sharding::AxisRef ref = sharding::AxisRef::full(mesh, index);
    if (axis.getSize()) {
      ref = {index, axis.getPre(), axis.getSize()};
      int64_t extent = mesh.shape[index];
      if (ref.pre < 1 || ref.pre > extent || ref.size < 1 || ref.size > extent / ref.pre ||
          extent % (ref.pre * ref.size) != 0) // (S5)
        return emitError() << "part (" << ref.pre << ")" << ref.size << " does not divide axis '"
                           << axis.getName().getValue() << "' of extent " << mesh.shape[index];
    }
    for (const sharding::AxisRef &other : result) // (S4)
      if (other.overlaps(ref) || (other.axis == index && mesh.shape[index] == 1))
        return emitError() << "mesh axis '" << axis.getName().getValue() << "' is used twice";
    result.push_back(ref);
  }
  return result;
}

static AxisRefAttr toIR(MLIRContext *context, const sharding::Mesh &mesh,
                        const sharding::AxisRef &axis) {
  bool full = axis.isFull(mesh);
  return AxisRefAttr::get(context, StringAttr::get(context, mesh.axisNames[axis.axis]),
                          full ? 1 : axis.pre, full ? 0 : axis.size);
}

AxisListAttr dist::toIR(MLIRContext *context, const sharding::Mesh &mesh,
                        const sharding::AxisList &axes) {
  SmallVector<AxisRefAttr> list;
  for (const sharding::AxisRef &axis : axes)
    list.push_back(::toIR(context, mesh, axis));
  return AxisListAttr::get(context, list);
}

static SmallVector<WindowAttr> toIR(MLIRContext *context, ArrayRef<sharding::Window> windows) {
  return llvm::map_to_vector(windows, [&](const sharding::Window &window) {
    return WindowAttr::get(context, window.dim, window.step, window.offset, window.length,
                           window.divisor, window.begin, window.stride, window.count);
  });
}

ShardingAttr ShardingAttr::get(FlatSymbolRefAttr mesh, const sharding::Mesh &axes,
                               const sharding::TensorSharding &value, MLIRContext *context,
                               int64_t priority) {
  sharding::TensorSharding sharding = sharding::canonical(value);
  auto allFull = [&](const sharding::AxisList &list) {
    return llvm::all_of(list, [&](const sharding::AxisRef &axis) { return axis.isFull(axes); });
  };
  bool byAxis = sharding.windows.empty() && allFull(sharding.usedAxes()) && allFull(sharding.open);
  if (byAxis) {
    auto placement = [&](PlacementKind kind, int64_t dim = 0, int64_t order = -1,
                         ReduceKind reduction = ReduceKind::sum) {
      return PlacementAttr::get(context, kind, dim, order, reduction);
    };
    SmallVector<PlacementAttr> placements(axes.numAxes(), placement(PlacementKind::replicate));
    for (auto [dim, list] : llvm::enumerate(sharding.dims)) {
      bool needsOrder = !llvm::is_sorted(list);
      for (auto [order, axis] : llvm::enumerate(list))
        placements[axis.axis] = placement(PlacementKind::shard, dim, needsOrder ? order : -1);
    }
    for (const sharding::PartialAxis &part : sharding.partial)
      placements[part.axis.axis] = placement(PlacementKind::partial, 0, -1, dist::toIR(part.kind));
    for (const sharding::AxisRef &axis : sharding.open)
      placements[axis.axis] = placement(PlacementKind::open);
    return get(context, mesh, false, placements, {}, {}, {}, {}, priority);
  }
  SmallVector<AxisListAttr> dims;
  for (const sharding::AxisList &list : sharding.dims)
    dims.push_back(dist::toIR(context, axes, list));
  SmallVector<PartialAttr> partial;
  for (const sharding::PartialAxis &part : sharding.partial)
    partial.push_back(
        PartialAttr::get(context, dist::toIR(part.kind), ::toIR(context, axes, part.axis)));
  SmallVector<AxisRefAttr> open;
  for (const sharding::AxisRef &axis : sharding.open)
    open.push_back(::toIR(context, axes, axis));
  return get(context, mesh, true, {}, dims, partial, open, ::toIR(context, sharding.windows),
             priority);
}

//===----------------------------------------------------------------------===//
// Shardings of ops, moves
//===----------------------------------------------------------------------===//

OpShardingAttr OpShardingAttr::get(FlatSymbolRefAttr mesh, const sharding::Mesh &axes,
                                   const sharding::OpSharding &sharding, MLIRContext *context) {
  SmallVector<AxisListAttr> factors;
  for (const sharding::AxisList &list : sharding.factors)
    factors.push_back(dist::toIR(context, axes, list));
  SmallVector<ForwardAttr> forwards;
  for (const sharding::Forward &forward : sharding.forwards)
    forwards.push_back(
        ForwardAttr::get(context,
                         PartialAttr::get(context, dist::toIR(forward.partial.kind),
                                          ::toIR(context, axes, forward.partial.axis)),
                         forward.operands));
  return get(context, mesh, factors, forwards, ::toIR(context, sharding.windows));
}

FailureOr<sharding::OpSharding>
OpShardingAttr::resolve(const sharding::Mesh &mesh,
                        llvm::function_ref<InFlightDiagnostic()> emitError) const {
  sharding::OpSharding result;
  for (AxisListAttr axes : getFactors()) {
    FailureOr<sharding::AxisList> list = resolveAxes(axes, mesh, emitError);
    if (failed(list))
      return failure();
    result.factors.push_back(std::move(*list));
  }
  for (ForwardAttr forward : getForwards()) {
    PartialAttr partial = forward.getPartial();
    FailureOr<sharding::AxisList> axis =
        resolveAxes(AxisListAttr::get(getContext(), {partial.getAxis()}), mesh, emitError);
    if (failed(axis))
      return failure();
    result.forwards.push_back({{axis->front(), toAlgebra(partial.getReduction())},
                               {forward.getOperands().begin(), forward.getOperands().end()}});
  }
  for (WindowAttr window : getWindows()) {
    auto invalid = [&]() { return emitError() << textOf(window) << " of a factor is not valid; "; };
    for (int64_t value : {window.getStep(), window.getOffset(), window.getLength(),
                          window.getDivisor(), window.getBegin(), window.getStride()})
      if (far(value))
        return invalid() << "numbers are in [-2^40, 2^40]";
    if (window.getLength() < 0 || window.getDivisor() < 1 || window.getStride() < 1 ||
        window.getBegin() < 0)
      return invalid() << "lengths and begins are not negative, divisors and strides positive";
    result.windows.push_back(::toAlgebra(window));
  }
  return result;
}

MoveAttr MoveAttr::get(const sharding::Mesh &mesh, const sharding::Move &move,
                       MLIRContext *context) {
  return get(context, move.kind, dist::toIR(context, mesh, move.axes), move.dim, move.splitDim,
             move.makesPartial, dist::toIR(move.reduction));
}

FailureOr<sharding::Move>
MoveAttr::resolve(const sharding::Mesh &mesh, sharding::TensorSharding source,
                  sharding::TensorSharding target,
                  llvm::function_ref<InFlightDiagnostic()> emitError) const {
  FailureOr<sharding::AxisList> axes = resolveAxes(getAxes(), mesh, emitError);
  if (failed(axes))
    return failure();
  return sharding::Move{getKind(),         std::move(*axes),  getDim(),
                        getSplitDim(),     getMakesPartial(), toAlgebra(getReduction()),
                        std::move(source), std::move(target)};
}
