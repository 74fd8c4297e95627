//===- ShardingRule.cpp - Loops of an op that may be cut ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Sharding/Segments.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>

namespace tessera::sharding {

bool ShardingRule::isElementwise() const {
  return std::all_of(factors.begin(), factors.end(),
                     [](const Factor &factor) { return factor.kind == FactorKind::parallel; });
}

ShardingRule identityRule(const std::vector<int64_t> &shape) {
  ShardingRule rule;
  TensorRule dims;
  for (int64_t extent : shape) {
    dims.push_back({{static_cast<int64_t>(rule.factors.size())}});
    rule.factors.push_back({extent, FactorKind::parallel, ReduceKind::sum});
  }
  rule.operands = {dims};
  rule.results = {dims};
  rule.accumulatorOf = {-1};
  rule.movesOnly = true;
  return rule;
}

static std::string nameOfFactor(int64_t factor) {
  std::string name(1, static_cast<char>('i' + factor % 18)); // i to z
  return factor < 18 ? name : name + std::to_string(factor / 18);
}

static std::string toString(const DimRule &dim) {
  std::string text;
  for (int64_t factor : dim.factors)
    text += nameOfFactor(factor);
  if (dim.factors.empty())
    text = "1";
  if (dim.segment) {
    const Segment &segment = *dim.segment;
    auto run = [](int64_t first, int64_t step) {
      std::string size = std::abs(step) == 1 ? "" : std::to_string(std::abs(step));
      std::string steps = size + "t";
      if (first == 0)
        return (step < 0 ? "-" : "") + steps;
      return std::to_string(first) + (step < 0 ? " - " : " + ") + steps;
    };
    text += "(" + run(segment.from, segment.fromStep) + " at " + run(segment.to, segment.toStep) +
            ", t < " + std::to_string(segment.count) + ")";
  } else if (dim.isWindow) {
    if (dim.stride != 1)
      text += " * " + std::to_string(dim.stride);
    if (dim.shift != 0)
      text += (dim.shift < 0 ? " - " : " + ") + std::to_string(std::abs(dim.shift));
    text += " .. + " + std::to_string(dim.extent);
  }
  return text;
}

static std::string toString(const std::vector<TensorRule> &tensors) {
  std::string text;
  for (const TensorRule &tensor : tensors) {
    text += text.empty() ? "[" : ", [";
    for (size_t d = 0; d < tensor.size(); ++d)
      text += (d ? ", " : "") + toString(tensor[d]);
    text += "]";
  }
  return "(" + text + ")";
}

std::string toString(const ShardingRule &rule) {
  std::string text = toString(rule.operands) + " -> " + toString(rule.results) + " {";
  std::map<std::string, std::string> remarks; // factors by remark
  for (size_t f = 0; f < rule.factors.size(); ++f) {
    std::string name = nameOfFactor(static_cast<int64_t>(f));
    text += (f ? ", " : "") + name + " = " + std::to_string(rule.factors[f].size);
    if (rule.factors[f].kind == FactorKind::replicate)
      remarks["whole"] += " " + name;
    else if (rule.factors[f].kind == FactorKind::reduction)
      remarks[std::string(toString(rule.factors[f].reduction)) + " over"] += " " + name;
  }
  text += "}";
  const char *separator = " ";
  for (const auto &[what, factors] : remarks) {
    text += separator + what + factors;
    separator = ", ";
  }
  for (size_t o = 0; o < rule.accumulatorOf.size(); ++o)
    if (rule.accumulatorOf[o] >= 0 && remarks.size() > remarks.count("whole")) {
      text += separator + std::string("operand ") + std::to_string(o) + " accumulates";
      separator = ", ";
    }
  return text;
}

void projectDim(const ShardingRule &rule, const DimRule &dim, const AxisList &axes,
                FactorAxes &factorAxes) {
  // If a slice has fewer elements than devices, some parts would be empty: all devices need it
  // whole.
  if (dim.segment && dim.isNarrow && rule.factors[dim.factors[0]].size < sizeOf(axes))
    return;
  AxisList rest = axes;
  for (size_t i = 0; i < dim.factors.size() && !rest.empty(); ++i) {
    int64_t factor = dim.factors[i], size = rule.factors[factor].size;
    int64_t parts = sizeOf(rest);
    if (i + 1 == dim.factors.size()) {
      // After other factors, a part must end where a part of the dimension ends.
      if (dim.factors.size() == 1 || size % parts == 0)
        factorAxes[factor] = rest;
      return;
    }
    if (size % parts == 0) { // all axes cut the major factor
      factorAxes[factor] = rest;
      return;
    }
    AxisList major, minor;
    if (parts % size != 0 || !splitAt(rest, size, major, minor))
      return; // parts would straddle the factors
    factorAxes[factor] = major;
    rest = minor;
  }
}

FactorAxes project(const ShardingRule &rule, const TensorRule &tensor,
                   const TensorSharding &sharding) {
  FactorAxes result(rule.factors.size());
  for (size_t d = 0; d < tensor.size(); ++d)
    projectDim(rule, tensor[d], sharding.dims[d], result);
  return result;
}

FactorAxes legalize(const ShardingRule &rule, FactorAxes axes) {
  AxisList used;
  for (size_t f = 0; f < axes.size(); ++f) {
    if (rule.factors[f].kind == FactorKind::replicate)
      axes[f].clear();
    // The list ends at an axis that an earlier factor uses: later axes would cut other parts.
    auto taken = std::find_if(axes[f].begin(), axes[f].end(),
                              [&](const AxisRef &axis) { return overlapsAny(used, axis); });
    axes[f].erase(taken, axes[f].end());
    used.insert(used.end(), axes[f].begin(), axes[f].end());
  }
  auto legalizeTensor = [&](const TensorRule &tensor) {
    for (const DimRule &dim : tensor) {
      if (dim.factors.size() < 2)
        continue;
      bool through = true; // all more major factors are cut down to single iterations
      for (size_t i = 0; i < dim.factors.size(); ++i) {
        int64_t factor = dim.factors[i];
        int64_t parts = sizeOf(axes[factor]), size = rule.factors[factor].size;
        if (!axes[factor].empty() && (!through || size % parts != 0)) {
          axes[factor].clear();
          parts = 1;
        }
        through = through && parts == size;
      }
    }
  };
  for (const TensorRule &tensor : rule.operands)
    legalizeTensor(tensor);
  for (const TensorRule &tensor : rule.results)
    legalizeTensor(tensor);
  return axes;
}

DimLayout partOf(const Segment &segment, const DimLayout &result) {
  int64_t to = segment.to * result.divisor, step = std::abs(segment.toStep) * result.divisor;
  DimLayout part = result;
  part.begin = 0;
  part.stride = 1;
  part.divisor = step;
  if (segment.toStep > 0) {
    part.offset = result.offset - to;
  } else {
    part.step = -result.step;
    part.offset = to - result.offset - result.length + 1;
  }
  return part.simplified();
}

/// The window of a dimension or factor; null if it has none.
static const Window *findWindow(const std::vector<Window> &windows, int64_t dim) {
  auto found = std::find_if(windows.begin(), windows.end(),
                            [&](const Window &window) { return window.dim == dim; });
  return found == windows.end() ? nullptr : &*found;
}

/// The iterations of a factor that a device executes: those of its window, or its own part.
static DimLayout partOf(const Factor &factor, const AxisList &axes, const Window *window) {
  if (window)
    return {axes,          window->step,  window->offset, window->length, window->divisor,
            window->begin, window->stride};
  int64_t chunk = ceilDiv(factor.size, sizeOf(axes));
  return {axes, chunk, 0, chunk};
}

DimLayout factorLayout(const ShardingRule &rule, const OpSharding &op, int64_t factor) {
  return partOf(rule.factors[factor], op.factors[factor], op.windowOf(factor));
}

/// The same, counted from iteration 0 where the window is one of a run of iterations.
static DimLayout countedFromZero(DimLayout part) {
  part.offset += part.begin * part.divisor;
  part.begin = 0;
  return part;
}

/// The window, without its dimension, of an operand read by segment for the iterations `own` of a
/// factor; empty if it is the plain shard. Of a slice of which a window selects elements, these
/// alone are read.
static std::optional<Window> readBySegment(const DimRule &dim, const DimLayout &own,
                                           const Window *selected) {
  const Segment &segment = *dim.segment;
  Window window;
  if (!dim.readsAll()) {
    window.begin = segment.from;
    window.stride = segment.fromStep;
    window.count = segment.count;
  }
  if (own.axes.empty()) {
    window.length = segment.count;
    return dim.isNarrow && window.isSelection() ? std::optional(window) : std::nullopt;
  }
  DimLayout part = partOf(segment, countedFromZero(own));
  int64_t chunk = ceilDiv(dim.operandSize, sizeOf(own.axes));
  if (!window.isSelection() && part == DimLayout{own.axes, chunk, 0, chunk})
    return std::nullopt;
  window.step = part.step;
  window.offset = part.offset;
  window.length = part.length;
  window.divisor = part.divisor;
  bool isSlice = segment.to == 0 && segment.toStep == 1 && selected && selected->isSelection() &&
                 selected->stride == 1;
  if (isSlice && selected->begin + selected->count <= segment.count) {
    window.begin = segment.from + selected->begin * segment.fromStep;
    window.stride = segment.fromStep;
    window.count = selected->count;
    window.offset -= selected->begin * window.divisor;
  }
  return window;
}

/// The window of an operand's dimension, but for its number, that the iterations `own` of a factor
/// read; of those that a window of the factor selects, the elements that only these read.
static Window readByWindow(const DimRule &dim, const DimLayout &own, const Window *selected) {
  DimLayout part = countedFromZero(own);
  Window result;
  result.step = part.step * dim.stride;
  result.offset = part.offset * dim.stride + dim.shift;
  result.length = (part.length - 1) * dim.stride + dim.extent;
  if (selected && selected->isSelection()) {
    int64_t first = selected->begin * dim.stride + dim.shift;
    int64_t end = first + (selected->count - 1) * dim.stride + dim.extent;
    result.begin = std::max<int64_t>(0, first);
    result.count = std::max<int64_t>(0, std::min(dim.operandSize, end) - result.begin);
    result.offset -= result.begin;
  }
  return result;
}

static TensorSharding tensorSharding(const ShardingRule &rule, const TensorRule &tensor,
                                     const FactorAxes &axes, const std::vector<Window> &windows) {
  TensorSharding result = TensorSharding::replicated(tensor.size());
  for (size_t d = 0; d < tensor.size(); ++d) {
    const DimRule &dim = tensor[d];
    for (int64_t factor : dim.factors)
      result.dims[d].insert(result.dims[d].end(), axes[factor].begin(), axes[factor].end());
    if (dim.factors.empty())
      continue;
    const Window *window = findWindow(windows, dim.factors[0]);
    DimLayout own = partOf(rule.factors[dim.factors[0]], result.dims[d], window);
    std::optional<Window> read;
    if (dim.segment)
      read = readBySegment(dim, own, window);
    else if (dim.isWindow && !result.dims[d].empty())
      read = readByWindow(dim, own, window);
    else if (window)
      read = *window;
    if (read) {
      read->dim = static_cast<int64_t>(d);
      result.windows.push_back(*read);
    }
  }
  return result;
}

static bool runsOver(const TensorRule &tensor, size_t factor) {
  return std::any_of(tensor.begin(), tensor.end(), [&](const DimRule &dim) {
    return std::find(dim.factors.begin(), dim.factors.end(), static_cast<int64_t>(factor)) !=
           dim.factors.end();
  });
}

/// Adds the partial axes of a result.
static void addPartials(const ShardingRule &rule, size_t result, const FactorAxes &axes,
                        TensorSharding &sharding) {
  if (result < rule.completes.size() && rule.completes[result])
    return;
  for (size_t f = 0; f < axes.size(); ++f)
    if (rule.factors[f].kind == FactorKind::reduction && !axes[f].empty() &&
        !runsOver(rule.results[result], f))
      for (const AxisRef &axis : axes[f])
        sharding.partial.push_back({axis, rule.factors[f].reduction});
}

static TensorSharding operandSharding(const ShardingRule &rule, int64_t index,
                                      const FactorAxes &axes, const std::vector<Window> &windows) {
  TensorSharding result = tensorSharding(rule, rule.operands[index], axes, windows);
  if (rule.accumulatorOf[index] >= 0)
    addPartials(rule, rule.accumulatorOf[index], axes, result);
  return canonical(result);
}

TensorSharding operandSharding(const ShardingRule &rule, int64_t index, const FactorAxes &axes) {
  return operandSharding(rule, index, axes, {});
}

static TensorSharding resultSharding(const ShardingRule &rule, int64_t index,
                                     const FactorAxes &axes, const std::vector<Window> &windows) {
  TensorSharding result = tensorSharding(rule, rule.results[index], axes, windows);
  addPartials(rule, index, axes, result);
  return canonical(result);
}

TensorSharding resultSharding(const ShardingRule &rule, int64_t index, const FactorAxes &axes) {
  return resultSharding(rule, index, axes, {});
}

const Window *OpSharding::windowOf(int64_t factor) const {
  return findWindow(windows, factor);
}

bool OpSharding::isWhole() const {
  return forwards.empty() && windows.empty() &&
         std::all_of(factors.begin(), factors.end(),
                     [](const AxisList &axes) { return axes.empty(); });
}

TensorSharding operandSharding(const ShardingRule &rule, int64_t index, const OpSharding &op) {
  TensorSharding result = operandSharding(rule, index, op.factors, op.windows);
  for (const Forward &forward : op.forwards)
    if (std::find(forward.operands.begin(), forward.operands.end(), index) !=
        forward.operands.end())
      result.partial.push_back(forward.partial);
  return op.forwards.empty() ? result : canonical(std::move(result));
}

TensorSharding resultSharding(const ShardingRule &rule, int64_t index, const OpSharding &op) {
  TensorSharding result = resultSharding(rule, index, op.factors, op.windows);
  for (const Forward &forward : op.forwards)
    result.partial.push_back(forward.partial);
  return op.forwards.empty() ? result : canonical(std::move(result));
}

/// The first part of `findContradiction` that is about a window.
static std::string findContradiction(const ShardingRule &rule, const OpSharding &op,
                                     const Window &window) {
  std::string text = "has a window of factor " + std::to_string(window.dim);
  if (window.dim < 0 || window.dim >= static_cast<int64_t>(rule.factors.size()))
    return text + "; factors are numbered from 0 to " + std::to_string(rule.factors.size() - 1);
  if (rule.factors[window.dim].kind != FactorKind::parallel)
    return text + ", which is not parallel; leave it out";
  auto contains = [&](const DimRule &dim) {
    return std::find(dim.factors.begin(), dim.factors.end(), window.dim) != dim.factors.end();
  };
  auto isShared = [&](const TensorRule &tensor) {
    return std::any_of(tensor.begin(), tensor.end(),
                       [&](const DimRule &dim) { return contains(dim) && dim.factors.size() > 1; });
  };
  if (std::any_of(rule.operands.begin(), rule.operands.end(), isShared) ||
      std::any_of(rule.results.begin(), rule.results.end(), isShared))
    return text + ", which is one of several of a dimension; leave it out";
  for (const TensorRule &operand : rule.operands)
    for (const DimRule &dim : operand) {
      if (!contains(dim) || (!dim.segment && !dim.isWindow))
        continue;
      bool readsNothing = false;
      if (dim.isWindow && window.isSelection())
        readsNothing = readByWindow(dim, factorLayout(rule, op, window.dim), &window).count == 0;
      if (op.factors[window.dim].empty() || window.stride != 1 ||
          (dim.isWindow && window.divisor != 1) || readsNothing)
        return text + ", for which no window of an operand serves; leave it out";
    }
  return {};
}

std::string findContradiction(const Mesh &mesh, const ShardingRule &rule, const OpSharding &op) {
  auto number = [](auto value) { return std::to_string(value); };
  if (op.factors.size() != rule.factors.size())
    return "has " + number(op.factors.size()) + " factors, the rule of the op has " +
           number(rule.factors.size()) + "; give each loop one list of axes";
  AxisList used;
  auto isFresh = [&](const AxisRef &axis) {
    bool fresh = !overlapsAny(used, axis);
    used.push_back(axis);
    return fresh;
  };
  for (size_t f = 0; f < op.factors.size(); ++f) {
    for (const AxisRef &axis : op.factors[f])
      if (!isFresh(axis))
        return "uses mesh axis " + toString(mesh, axis) + " twice; an axis cuts one factor";
    if (rule.factors[f].kind == FactorKind::replicate && !op.factors[f].empty())
      return "cuts factor " + number(f) +
             ", which the rule of the op keeps whole; leave its list empty";
  }
  if (FactorAxes legal = legalize(rule, op.factors); legal != op.factors)
    for (size_t f = 0; f < legal.size(); ++f)
      if (legal[f] != op.factors[f])
        return "cuts factor " + number(f) + " of a dimension made of several factors into parts " +
               "that are not contiguous; cut the major factors down to single iterations first";
  for (const Forward &forward : op.forwards) {
    if (!isFresh(forward.partial.axis))
      return "forwards contributions over mesh axis " + toString(mesh, forward.partial.axis) +
             ", which it uses already; leave out the forward, or the axis of the factor";
    if (forward.operands.empty())
      return "forwards contributions from no operand; list the operands that have them";
    if (std::adjacent_find(forward.operands.begin(), forward.operands.end(),
                           std::greater_equal<>()) != forward.operands.end())
      return "forwards contributions from a list of operands that is not ascending; list each once";
    if (forward.operands.front() < 0 ||
        forward.operands.back() >= static_cast<int64_t>(rule.operands.size()))
      return "forwards contributions from operand " +
             number(forward.operands.front() < 0 ? forward.operands.front()
                                                 : forward.operands.back()) +
             "; operands are numbered from 0 to " + number(rule.operands.size() - 1);
  }
  for (size_t i = 0; i < op.windows.size(); ++i) {
    if (std::string why = findContradiction(rule, op, op.windows[i]); !why.empty())
      return why;
    if (i > 0 && op.windows[i].dim <= op.windows[i - 1].dim)
      return "has a list of windows that is not ascending; list one per factor";
  }
  return {};
}

} // namespace tessera::sharding
