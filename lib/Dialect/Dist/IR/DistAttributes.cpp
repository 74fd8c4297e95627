//===- DistAttributes.cpp - Spelling and meaning of shardings --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttributeSyntax.h"
#include "tessera/Dialect/Dist/IR/Dist.h"

#include "mlir/IR/DialectImplementation.h"
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
// Spelling
//===----------------------------------------------------------------------===//

template <typename Enum> static ParseResult parseReduction(AsmParser &parser, Enum &kind) {
  StringRef text;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&text))
    return failure();
  std::optional<ReduceKind> parsed = symbolizeReduceKind(text);
  if (!parsed)
    return parser.emitError(loc) << "unknown reduction '" << text
                                 << "'; it is one of sum, avg, max, min, prod";
  kind = *parsed;
  return success();
}

static ParseResult parsePlacement(AsmParser &parser, PlacementAttr &placement) {
  MLIRContext *context = parser.getContext();
  if (succeeded(parser.parseOptionalQuestion())) {
    placement = PlacementAttr::get(context, PlacementKind::open, 0, -1, ReduceKind::sum);
    return success();
  }
  StringRef text;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&text))
    return failure();
  int64_t dim = 0, order = -1;
  ReduceKind reduction = ReduceKind::sum;
  if (text == "shard") {
    if (parser.parseLParen() || parser.parseInteger(dim))
      return failure();
    if (succeeded(parser.parseOptionalComma())) {
      SMLoc orderLoc = parser.getCurrentLocation();
      if (parser.parseKeyword("order") || parser.parseEqual() || parser.parseInteger(order))
        return failure();
      if (order < 0)
        return parser.emitError(orderLoc)
               << "order " << order << " is negative; 0 is the major axis";
    }
    if (parser.parseRParen())
      return failure();
  } else if (text == "partial") {
    if (parser.parseLParen() || parseReduction(parser, reduction) || parser.parseRParen())
      return failure();
  } else if (text != "replicate") {
    return parser.emitError(loc) << "unknown placement '" << text
                                 << "'; it is one of replicate, shard(d), partial(op), ?";
  }
  placement = PlacementAttr::get(context, *symbolizePlacementKind(text), dim, order, reduction);
  return success();
}

ParseResult dist::parseAxisRef(AsmParser &parser, AxisRefAttr &axis) {
  std::string name;
  int64_t pre = 1, size = 0;
  if (parser.parseString(&name))
    return failure();
  if (succeeded(parser.parseOptionalColon())) {
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseLParen() || parser.parseInteger(pre) || parser.parseRParen() ||
        parser.parseInteger(size))
      return failure();
    if (pre < 1 || size < 2)
      return parser.emitError(loc) << "axis part (" << pre << ")" << size << " of '" << name
                                   << "': (pre)size needs pre >= 1 and size >= 2";
  }
  axis =
      AxisRefAttr::get(parser.getContext(), StringAttr::get(parser.getContext(), name), pre, size);
  return success();
}

ParseResult dist::parseAxes(AsmParser &parser, AxisListAttr &axes) {
  SmallVector<AxisRefAttr> list;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                     [&]() { return parseAxisRef(parser, list.emplace_back()); }))
    return failure();
  axes = AxisListAttr::get(parser.getContext(), list);
  return success();
}

void dist::printAxisRef(llvm::raw_ostream &os, AxisRefAttr axis) {
  os << '"';
  llvm::printEscapedString(axis.getName().getValue(), os);
  os << '"';
  if (axis.getSize())
    os << ":(" << axis.getPre() << ")" << axis.getSize();
}

void dist::printAxes(llvm::raw_ostream &os, AxisListAttr axes) {
  os << "[";
  llvm::interleaveComma(axes.getAxes(), os, [&](AxisRefAttr axis) { printAxisRef(os, axis); });
  os << "]";
}

static ParseResult parsePartial(AsmParser &parser, PartialAttr &partial) {
  ReduceKind reduction;
  AxisRefAttr axis;
  if (parseReduction(parser, reduction) || parser.parseLParen() || parseAxisRef(parser, axis) ||
      parser.parseRParen())
    return failure();
  partial = PartialAttr::get(parser.getContext(), reduction, axis);
  return success();
}

static ParseResult parseWindow(AsmParser &parser, WindowAttr &window) {
  SmallVector<int64_t> values;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren,
                                     [&]() { return parser.parseInteger(values.emplace_back()); }))
    return failure();
  if (values.size() != 4)
    return parser.emitError(loc) << "a window is (dim, step, offset, length)";
  window = WindowAttr::get(parser.getContext(), values[0], values[1], values[2], values[3]);
  return success();
}

/// Parses `name = [element, …]` after the name.
template <typename T>
static ParseResult parseList(AsmParser &parser, SmallVectorImpl<T> &list,
                             ParseResult (*element)(AsmParser &, T &)) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                        [&]() { return element(parser, list.emplace_back()); });
}

/// `@mesh, [placements] (, priority = n)?>` or `@mesh, dims = …, partial = …, …>`, after the '<'.
static Attribute parseShardingBody(AsmParser &parser) {
  FlatSymbolRefAttr mesh;
  bool byDim = false;
  SmallVector<PlacementAttr> placements;
  SmallVector<AxisListAttr> dims;
  SmallVector<PartialAttr> partial;
  SmallVector<AxisRefAttr> open;
  SmallVector<WindowAttr> windows;
  int64_t priority = -1;
  if (parser.parseAttribute(mesh) || parser.parseComma())
    return {};
  bool first = true;
  SmallVector<StringRef> seen;
  do {
    SMLoc loc = parser.getCurrentLocation();
    StringRef field;
    if (first && failed(parser.parseOptionalKeyword(&field))) {
      if (parseList(parser, placements, &parsePlacement))
        return {};
    } else {
      if (!first && parser.parseKeyword(&field))
        return {};
      if (first)
        byDim = true;
      if (llvm::is_contained(seen, field)) {
        parser.emitError(loc) << "'" << field << "' stands twice in a sharding";
        return {};
      }
      seen.push_back(field);
      if (parser.parseEqual())
        return {};
      ParseResult result = failure();
      if (field == "dims" && byDim)
        result = parseList(parser, dims, &parseAxes);
      else if (field == "partial" && byDim)
        result = parseList(parser, partial, &parsePartial);
      else if (field == "open" && byDim)
        result = parseList(parser, open, &parseAxisRef);
      else if (field == "windows" && byDim)
        result = parseList(parser, windows, &parseWindow);
      else if (field == "priority") {
        SMLoc valueLoc = parser.getCurrentLocation();
        result = parser.parseInteger(priority);
        if (succeeded(result) && priority < 0)
          result = parser.emitError(valueLoc)
                   << "priority " << priority << " is negative; 0 is first";
      } else {
        result =
            parser.emitError(loc)
            << "unknown field '" << field << "' of a sharding; after the mesh comes a list of "
            << "placements, or dims = …, partial = …, open = …; priority = n may follow either";
      }
      if (failed(result))
        return {};
    }
    first = false;
  } while (succeeded(parser.parseOptionalComma()));
  if (byDim && !llvm::is_contained(seen, "dims")) {
    parser.emitError(parser.getCurrentLocation())
        << "a sharding by dimension needs dims = [[…], …]";
    return {};
  }
  if (parser.parseGreater())
    return {};
  return ShardingAttr::get(parser.getContext(), mesh, byDim, placements, dims, partial, open,
                           windows, priority);
}

static void printPlacement(llvm::raw_ostream &os, PlacementAttr placement) {
  switch (placement.getKind()) {
  case PlacementKind::open:
    os << "?";
    break;
  case PlacementKind::shard:
    os << "shard(" << placement.getDim();
    if (placement.getOrder() >= 0)
      os << ", order = " << placement.getOrder();
    os << ")";
    break;
  case PlacementKind::partial:
    os << "partial(" << stringifyReduceKind(placement.getReduction()) << ")";
    break;
  case PlacementKind::replicate:
    os << "replicate";
  }
}

static void printSharding(ShardingAttr sharding, AsmPrinter &printer) {
  llvm::raw_ostream &os = printer.getStream();
  printer << "<" << sharding.getMesh() << ", ";
  if (!sharding.getByDim()) {
    os << "[";
    llvm::interleaveComma(sharding.getPlacements(), os,
                          [&](PlacementAttr placement) { printPlacement(os, placement); });
    os << "]";
  } else {
    os << "dims = [";
    llvm::interleaveComma(sharding.getDims(), os, [&](AxisListAttr axes) { printAxes(os, axes); });
    os << "]";
    if (!sharding.getPartial().empty()) {
      os << ", partial = [";
      llvm::interleaveComma(sharding.getPartial(), os, [&](PartialAttr partial) {
        os << stringifyReduceKind(partial.getReduction()) << "(";
        printAxisRef(os, partial.getAxis());
        os << ")";
      });
      os << "]";
    }
    if (!sharding.getOpen().empty()) {
      os << ", open = [";
      llvm::interleaveComma(sharding.getOpen(), os,
                            [&](AxisRefAttr axis) { printAxisRef(os, axis); });
      os << "]";
    }
    if (!sharding.getWindows().empty()) {
      os << ", windows = [";
      llvm::interleaveComma(sharding.getWindows(), os, [&](WindowAttr window) {
        os << "(" << window.getDim() << ", " << window.getStep() << ", " << window.getOffset()
           << ", " << window.getLength() << ")";
      });
      os << "]";
    }
  }
  if (sharding.getPriority() >= 0)
    os << ", priority = " << sharding.getPriority();
  os << ">";
}

Attribute DistDialect::parseAttribute(DialectAsmParser &parser, Type type) const {
  SMLoc loc = parser.getCurrentLocation();
  StringRef mnemonic;
  if (parser.parseKeyword(&mnemonic))
    return {};
  if (mnemonic == "axes") { // the list of a collective in generic syntax
    AxisListAttr axes;
    if (parser.parseLess() || parseAxes(parser, axes) || parser.parseGreater())
      return {};
    return axes;
  }
  if (mnemonic != "sharding") {
    parser.emitError(loc) << "unknown attribute 'dist." << mnemonic
                          << "'; the dialect has #dist.sharding";
    return {};
  }
  Attribute sharding;
  if (parser.parseLess() || !(sharding = parseShardingBody(parser)))
    return {};
  if (!type)
    return sharding;
  return TypedShardingAttr::get(getContext(), cast<ShardingAttr>(sharding), type);
}

void DistDialect::printAttribute(Attribute attribute, DialectAsmPrinter &printer) const {
  llvm::TypeSwitch<Attribute>(attribute)
      .Case([&](ShardingAttr sharding) {
        printer << "sharding";
        printSharding(sharding, printer);
      })
      .Case([&](AxisListAttr axes) {
        printer << "axes<";
        printAxes(printer.getStream(), axes);
        printer << ">";
      })
      // The remaining attributes are parts of others; this is what a debugger shows.
      .Case([&](AxisRefAttr axis) { printAxisRef(printer.getStream(), axis); })
      .Case([&](PlacementAttr placement) { printPlacement(printer.getStream(), placement); })
      .Case([&](TypedShardingAttr typed) {
        printer << typed.getSharding() << " : " << typed.getType();
      })
      .Default([&](Attribute) { printer << "part"; });
}

//===----------------------------------------------------------------------===//
// Short form inside the ops of the dialect: <@mesh, …> without #dist.sharding
//===----------------------------------------------------------------------===//

ParseResult dist::parseShardingOperand(AsmParser &parser, ShardingAttr &sharding, Type &swallowed) {
  SMLoc loc = parser.getCurrentLocation();
  Attribute attribute;
  if (succeeded(parser.parseOptionalLess())) {
    sharding = llvm::cast_or_null<ShardingAttr>(parseShardingBody(parser));
    return success(sharding != nullptr);
  }
  if (parser.parseAttribute(attribute))
    return failure();
  if (auto typed = dyn_cast<TypedShardingAttr>(attribute)) {
    sharding = typed.getSharding();
    swallowed = typed.getType();
    return success();
  }
  sharding = dyn_cast<ShardingAttr>(attribute);
  if (!sharding)
    return parser.emitError(loc) << "expected #dist.sharding<@mesh, …>, found " << attribute;
  return success();
}

//===----------------------------------------------------------------------===//
// Meaning
//===----------------------------------------------------------------------===//

namespace {

/// Turns one attribute into the algebra's value, reporting the first rule that it breaks.
class Resolver {
public:
  Resolver(ShardingAttr attr, const sharding::Mesh &mesh, Type type,
           llvm::function_ref<InFlightDiagnostic()> emitError)
      : attr(attr), mesh(mesh), tensor(dyn_cast<RankedTensorType>(type)), type(type),
        emitError(emitError) {}

  FailureOr<sharding::TensorSharding> run() {
    if (!tensor) // (S10)
      return emitError() << "a sharding stands on ranked tensors, not on " << type << "";
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
                         << " axes; give at most one placement an axis";
    SmallVector<SmallVector<std::pair<int64_t, sharding::AxisRef>>> ordered(tensor.getRank());
    for (int64_t axis = 0; axis < mesh.numAxes(); ++axis) {
      sharding::AxisRef ref = sharding::AxisRef::full(mesh, axis);
      if (axis >= static_cast<int64_t>(attr.getPlacements().size())) {
        result.open.push_back(ref); // what is not written is left to the compiler
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
          return emitError() << "shard(" << dim << ") of a rank-" << rank << " tensor " << tensor << ": the dimension lies in [" << -rank << ", " << rank << ")";
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
      return emitError() << attr << " has " << attr.getDims().size() << " dimensions, the tensor " << tensor << " has " << tensor.getRank();
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
      auto far = [](int64_t value) { return value < -kMaxExtent || value > kMaxExtent; };
      bool valid = window.getDim() >= 0 && window.getDim() < tensor.getRank() &&
                   window.getStep() >= 0 && window.getLength() >= 0 && !far(window.getStep()) &&
                   !far(window.getOffset()) && !far(window.getLength());
      if (!valid)
        return emitError() << "window (" << window.getDim() << ", " << window.getStep() << ", "
                           << window.getOffset() << ", " << window.getLength() << ") of " << tensor
                           << ": the dimension lies in [0, " << tensor.getRank()
                           << "), step and length in [0, 2^40], the offset in [-2^40, 2^40]";
      result.windows.push_back(
          {window.getDim(), window.getStep(), window.getOffset(), window.getLength()});
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
                           << ", in " << attr << "; only sum goes with avg";
      if (part.kind == sharding::ReduceKind::avg &&
          !isa<FloatType>(tensor.getElementType())) // (S8)
        return emitError() << "partial(avg) of " << tensor << ": integers have no average; use partial(sum)";
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
                         << "'";
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
  SmallVector<WindowAttr> windows;
  for (const sharding::Window &window : sharding.windows)
    windows.push_back(
        WindowAttr::get(context, window.dim, window.step, window.offset, window.length));
  return get(context, mesh, true, {}, dims, partial, open, windows, priority);
}
