//===- AttributeSyntax.cpp - Spelling of shardings ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/IR/AttributeSyntax.h"
#include "tessera/Sharding/CollectiveTraits.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

template <typename Enum> static ParseResult parseReduction(AsmParser &parser, Enum &kind) {
  StringRef text;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&text))
    return failure();
  std::optional<ReduceKind> parsed = symbolizeReduceKind(text);
  if (!parsed)
    return parser.emitError(loc) << "unknown reduction '" << text
                                 << "'; expected one of sum, avg, max, min, prod";
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
                                 << "'; expected one of replicate, shard(d), partial(op), ?";
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
  if (values.size() != 4 && values.size() != 5 && values.size() != 8)
    return parser.emitError(loc)
           << "expected a window (dim, step, offset, length), with the divisor and the begin, "
              "stride and count of a selection as optional fields after them";
  if (values.size() == 4)
    values.push_back(1);
  if (values.size() == 5)
    values.append({0, 1, -1});
  window = WindowAttr::get(parser.getContext(), values[0], values[1], values[2], values[3],
                           values[4], values[5], values[6], values[7]);
  return success();
}

void dist::printWindow(llvm::raw_ostream &os, WindowAttr window) {
  os << "(" << window.getDim() << ", " << window.getStep() << ", " << window.getOffset() << ", "
     << window.getLength();
  bool selects = window.getCount() >= 0;
  if (selects || window.getDivisor() != 1)
    os << ", " << window.getDivisor();
  if (selects)
    os << ", " << window.getBegin() << ", " << window.getStride() << ", " << window.getCount();
  os << ")";
}

/// `, windows = […]` where there are any.
static void printWindows(llvm::raw_ostream &os, ArrayRef<WindowAttr> windows) {
  if (windows.empty())
    return;
  os << ", windows = [";
  llvm::interleaveComma(windows, os, [&](WindowAttr window) { printWindow(os, window); });
  os << "]";
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
        parser.emitError(loc) << "duplicate field '" << field << "' in a sharding";
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
        result = parser.emitError(loc)
                 << "unknown field '" << field
                 << "' of a sharding; expected a list of placements, or dims = …, partial = …, "
                    "open = …, then optionally priority = n";
      }
      if (failed(result))
        return {};
    }
    first = false;
  } while (succeeded(parser.parseOptionalComma()));
  if (byDim && !llvm::is_contained(seen, "dims")) {
    parser.emitError(parser.getCurrentLocation())
        << "expected dims = [[…], …] in a by-dimension sharding";
    return {};
  }
  if (parser.parseGreater())
    return {};
  return ShardingAttr::get(parser.getContext(), mesh, byDim, placements, dims, partial, open,
                           windows, priority);
}

static void printPartial(llvm::raw_ostream &os, PartialAttr partial) {
  os << stringifyReduceKind(partial.getReduction()) << "(";
  printAxisRef(os, partial.getAxis());
  os << ")";
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
      llvm::interleaveComma(sharding.getPartial(), os,
                            [&](PartialAttr partial) { printPartial(os, partial); });
      os << "]";
    }
    if (!sharding.getOpen().empty()) {
      os << ", open = [";
      llvm::interleaveComma(sharding.getOpen(), os,
                            [&](AxisRefAttr axis) { printAxisRef(os, axis); });
      os << "]";
    }
    printWindows(os, sharding.getWindows());
  }
  if (sharding.getPriority() >= 0)
    os << ", priority = " << sharding.getPriority();
  os << ">";
}

//===----------------------------------------------------------------------===//
// #dist.op_sharding, #dist.move
//===----------------------------------------------------------------------===//

/// `sum("dp") from [0, 2]`.
static ParseResult parseForward(AsmParser &parser, ForwardAttr &forward) {
  PartialAttr partial;
  SmallVector<int64_t> operands;
  if (parsePartial(parser, partial) || parser.parseKeyword("from") ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() {
        return parser.parseInteger(operands.emplace_back());
      }))
    return failure();
  forward = ForwardAttr::get(parser.getContext(), partial, operands);
  return success();
}

/// `@mesh, factors = […] (, forwards = […])? (, windows = […])?>`, after the '<'.
static Attribute parseOpSharding(AsmParser &parser) {
  FlatSymbolRefAttr mesh;
  SmallVector<AxisListAttr> factors;
  SmallVector<ForwardAttr> forwards;
  SmallVector<WindowAttr> windows;
  if (parser.parseAttribute(mesh) || parser.parseComma() || parser.parseKeyword("factors") ||
      parser.parseEqual() || parseList(parser, factors, &parseAxes))
    return {};
  bool hasMore = succeeded(parser.parseOptionalComma());
  if (hasMore && succeeded(parser.parseOptionalKeyword("forwards"))) {
    if (parser.parseEqual() || parseList(parser, forwards, &parseForward))
      return {};
    hasMore = succeeded(parser.parseOptionalComma());
  }
  if (hasMore && (parser.parseKeyword("windows") || parser.parseEqual() ||
                  parseList(parser, windows, &parseWindow)))
    return {};
  if (parser.parseGreater())
    return {};
  return OpShardingAttr::get(parser.getContext(), mesh, factors, forwards, windows);
}

static void printOpSharding(OpShardingAttr sharding, AsmPrinter &printer) {
  llvm::raw_ostream &os = printer.getStream();
  printer << "<" << sharding.getMesh() << ", factors = [";
  llvm::interleaveComma(sharding.getFactors(), os, [&](AxisListAttr axes) { printAxes(os, axes); });
  os << "]";
  if (!sharding.getForwards().empty()) {
    os << ", forwards = [";
    llvm::interleaveComma(sharding.getForwards(), os, [&](ForwardAttr forward) {
      printPartial(os, forward.getPartial());
      os << " from [";
      llvm::interleaveComma(forward.getOperands(), os);
      os << "]";
    });
    os << "]";
  }
  printWindows(os, sharding.getWindows());
  os << ">";
}

/// The algebra represents a local step to contributions as a slice; its syntax is that of its op.
static constexpr StringLiteral kMakePartial = "make_partial";

/// `kind (over [axes])? (field = value)*>`, after the '<'.
static Attribute parseMove(AsmParser &parser) {
  StringRef text;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&text))
    return {};
  bool makesPartial = text == kMakePartial;
  std::optional<sharding::CollectiveKind> kind =
      makesPartial ? sharding::CollectiveKind::slice
                   : sharding::parseCollectiveKind(std::string_view(text));
  if (!kind) {
    parser.emitError(loc) << "unknown move '" << text << "'; expected the name of a collective or '"
                          << kMakePartial << "'";
    return {};
  }
  auto axes = AxisListAttr::get(parser.getContext(), ArrayRef<AxisRefAttr>());
  int64_t dim = 0, splitDim = 0;
  ReduceKind reduction = ReduceKind::sum;
  if (succeeded(parser.parseOptionalKeyword("over")) && parseAxes(parser, axes))
    return {};
  StringRef field;
  for (loc = parser.getCurrentLocation(); succeeded(parser.parseOptionalKeyword(&field));
       loc = parser.getCurrentLocation()) {
    if (parser.parseEqual())
      return {};
    ParseResult result = failure();
    if (field == "dim" || field == "concat_dim")
      result = parser.parseInteger(dim);
    else if (field == "split_dim")
      result = parser.parseInteger(splitDim);
    else if (field == "reduction")
      result = parseReduction(parser, reduction);
    else
      parser.emitError(loc) << "unknown field '" << field
                            << "' of a move; expected one of dim, split_dim, concat_dim, reduction";
    if (failed(result))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return MoveAttr::get(parser.getContext(), *kind, axes, dim, splitDim, makesPartial, reduction);
}

static void printMove(MoveAttr move, AsmPrinter &printer) {
  llvm::raw_ostream &os = printer.getStream();
  sharding::CollectiveKind kind = move.getKind();
  os << "<" << (move.getMakesPartial() ? StringRef(kMakePartial) : StringRef(toString(kind)));
  if (!move.getAxes().getAxes().empty()) {
    os << " over ";
    printAxes(os, move.getAxes());
  }
  const sharding::CollectiveTraits &traits = sharding::traitsOf(kind);
  if (!traits.splitDim.empty())
    os << " " << traits.splitDim << " = " << move.getSplitDim();
  if (!traits.dim.empty() && !move.getMakesPartial())
    os << " " << traits.dim << " = " << move.getDim();
  if (traits.reduces || move.getMakesPartial())
    os << " reduction = " << stringifyReduceKind(move.getReduction());
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
  if (mnemonic == "op_sharding")
    return parser.parseLess() ? Attribute() : parseOpSharding(parser);
  if (mnemonic == "move")
    return parser.parseLess() ? Attribute() : parseMove(parser);
  if (mnemonic != "sharding") {
    parser.emitError(loc) << "unknown attribute 'dist." << mnemonic
                          << "'; the dialect has #dist.sharding, #dist.op_sharding, #dist.move";
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
      .Case([&](OpShardingAttr sharding) {
        printer << "op_sharding";
        printOpSharding(sharding, printer);
      })
      .Case([&](MoveAttr move) {
        printer << "move";
        printMove(move, printer);
      })
      .Case([&](AxisListAttr axes) {
        printer << "axes<";
        printAxes(printer.getStream(), axes);
        printer << ">";
      })
      // The remaining attributes are parts of others; this form is for debuggers.
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
