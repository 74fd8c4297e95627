//===- Overlaps.cpp - Held and needed elements of a tensor ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Overlaps.h"

#include "IndexWalk.h"

#include <algorithm>
#include <optional>

namespace tessera::sharding {

namespace {

/// How a dimension is cut before and after a move, in indices of the moved elements.
struct Cut {
  DimLayout had, wants;
  int64_t extent; ///< of the moved elements
  int64_t chunk;  ///< of the parts before the move

  std::pair<int64_t, int64_t> rangeOf(const DimLayout &dim, int64_t part) const {
    auto [first, last] = dim.span(part);
    int64_t begin = std::max<int64_t>(0, first);
    return {begin, std::max(begin, std::min(extent, last))};
  }
  /// The number of parts, if they do not overlap, that share elements with [begin, end).
  int64_t partsIn(int64_t begin, int64_t end) const {
    if (begin >= end)
      return 0;
    int64_t first = had.begin + begin * had.stride, last = had.begin + (end - 1) * had.stride;
    return last / chunk - first / chunk + 1;
  }
};

} // namespace

/// Whether the parts are plain shards: no windows, no selections.
static bool isPlain(const DimLayout &dim) {
  return dim.offset == 0 && dim.length == dim.step && dim.divisor == 1 && dim.begin == 0 &&
         dim.stride == 1;
}

/// Whether two dimensions are cut over a common part of a mesh axis, before or after the move.
static bool shareAxes(const Layout &source, const Layout &target, size_t a, size_t b) {
  for (const Layout *one : {&source, &target})
    for (const Layout *other : {&source, &target})
      for (const AxisRef &axis : one->dims[a].axes)
        if (overlapsAny(other->dims[b].axes, axis))
          return true;
  return false;
}

/// The dimensions connected with `first` by common axes, directly or indirectly, and the mesh axes
/// that they are cut over. `isDone` marks them.
static std::pair<std::vector<size_t>, std::vector<int64_t>>
dependentDims(size_t first, const Layout &source, const Layout &target, std::vector<char> &isDone) {
  std::vector<size_t> dims{first};
  isDone[first] = 1;
  for (size_t next = 0; next < dims.size(); ++next)
    for (size_t d = 0; d < source.dims.size(); ++d)
      if (!isDone[d] && shareAxes(source, target, dims[next], d)) {
        dims.push_back(d);
        isDone[d] = 1;
      }
  std::vector<int64_t> axes;
  for (size_t d : dims)
    for (const Layout *layout : {&source, &target})
      for (const AxisRef &axis : layout->dims[d].axes)
        if (std::find(axes.begin(), axes.end(), axis.axis) == axes.end())
          axes.push_back(axis.axis);
  return {std::move(dims), std::move(axes)};
}

static void add(std::vector<Overlap> &all, const Overlap &here) {
  auto same = std::find_if(all.begin(), all.end(), [&](const Overlap &known) {
    return known.wanted == here.wanted && known.held == here.held && known.both == here.both &&
           known.parts == here.parts;
  });
  if (same == all.end())
    all.push_back(here);
  else
    same->devices += here.devices;
}

/// The overlaps of the plain parts of one dimension, if the axes of one side continue those of the
/// other: a device has the fine part i and the coarse part i / ratio. In time linear in the coarse
/// parts: of the fine parts that go with one of them, all within the coarse part are alike, and all
/// outside of it.
static std::optional<std::vector<Overlap>> overlapsOfNested(const Cut &cut, int64_t devices,
                                                            bool plain) {
  bool hadFine = isPrefix(cut.wants.axes, cut.had.axes);
  const DimLayout &fine = hadFine ? cut.had : cut.wants, &coarse = hadFine ? cut.wants : cut.had;
  if (!plain || (!hadFine && !isPrefix(cut.had.axes, cut.wants.axes)) || fine.step <= 0 ||
      coarse.step <= 0 || (!hadFine && coarse.step % fine.step != 0))
    return std::nullopt;
  int64_t coarseParts = sizeOf(coarse.axes), ratio = sizeOf(fine.axes) / coarseParts;
  int64_t each = devices / (coarseParts * ratio); // devices that hold the same parts
  std::vector<Overlap> all;
  for (int64_t k = 0; k < coarseParts; ++k) {
    auto [from, to] = cut.rangeOf(coarse, k);
    std::vector<int64_t> bounds{k * ratio, (k + 1) * ratio};
    for (int64_t edge : {from, to, cut.extent})
      for (int64_t at : {edge / fine.step, ceilDiv(edge, fine.step)})
        bounds.push_back(std::clamp(at, k * ratio, (k + 1) * ratio));
    std::sort(bounds.begin(), bounds.end());
    for (size_t i = 0; i + 1 < bounds.size(); ++i) {
      if (bounds[i] == bounds[i + 1])
        continue;
      auto [begin, end] = cut.rangeOf(fine, bounds[i]);
      int64_t both = std::max<int64_t>(0, std::min(end, to) - std::max(begin, from));
      int64_t count = (bounds[i + 1] - bounds[i]) * each;
      add(all, hadFine ? Overlap{to - from, end - begin, both, cut.partsIn(from, to), count}
                       : Overlap{end - begin, to - from, both, cut.partsIn(begin, end), count});
    }
  }
  return all;
}

/// The overlaps of one dimension in which every device wants a run at the same distance from its
/// part: halos, and blocks of other devices in the turns of a ring. In time that does not depend on
/// the devices: away from the ends of the dimension all are alike.
static std::optional<std::vector<Overlap>> overlapsOfShifted(const Cut &cut, int64_t devices,
                                                             bool countsParts) {
  const DimLayout &had = cut.had, &wants = cut.wants;
  if (had.axes != wants.axes || had.step <= 0 || had.step != wants.step || had.step != cut.chunk ||
      had.divisor != 1 || wants.divisor != 1 || had.begin != 0 || had.stride != 1)
    return std::nullopt;
  const int64_t parts = sizeOf(had.axes);
  std::vector<int64_t> bounds{0, parts};
  for (const DimLayout &dim : {had, wants})
    for (int64_t edge : {dim.offset, dim.offset + dim.length})
      for (int64_t end : {int64_t(0), cut.extent}) {
        // The part whose edge is at the end, or the two around it.
        int64_t at = end - edge >= 0 ? (end - edge) / dim.step : -ceilDiv(edge - end, dim.step);
        for (int64_t bound : {at, at + 1})
          bounds.push_back(std::clamp<int64_t>(bound, 0, parts));
      }
  std::sort(bounds.begin(), bounds.end());
  auto overlapOf = [&](int64_t part, int64_t count) {
    auto [from, to] = cut.rangeOf(had, part);
    auto [begin, end] = cut.rangeOf(wants, part);
    return Overlap{end - begin, to - from,
                   std::max<int64_t>(0, std::min(end, to) - std::max(begin, from)),
                   countsParts ? cut.partsIn(begin, end) : 1, count * (devices / parts)};
  };
  // One end of the run is beyond the dimension: its length depends on the part.
  auto isClipped = [&](const DimLayout &dim, int64_t part) {
    auto [first, last] = dim.span(part);
    return (first < 0) != (last <= 0) || (first < cut.extent) != (last <= cut.extent);
  };
  std::vector<Overlap> all;
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    int64_t first = bounds[i], last = bounds[i + 1];
    if (first < last && !isClipped(had, first) && !isClipped(wants, first))
      add(all, overlapOf(first, last - first));
    else
      for (int64_t part = first; part < last; ++part)
        add(all, overlapOf(part, 1));
  }
  return all;
}

/// Parts of mesh axes of equal sizes on which the coordinates of some devices agree.
using EqualParts = std::vector<std::pair<AxisRef, AxisRef>>;

/// Appends what equal indices over two lists of axes of one size mean for their parts. Returns
/// false if the lists have no common parts.
static bool addEqualParts(AxisList a, AxisList b, EqualParts &equal) {
  for (AxisList *axes : {&a, &b})
    std::erase_if(*axes, [](const AxisRef &axis) { return axis.size == 1; });
  while (!a.empty() && !b.empty()) {
    int64_t size = std::min(a.front().size, b.front().size);
    AxisList firstA, firstB, restA, restB;
    if (!splitAt(a, size, firstA, restA) || !splitAt(b, size, firstB, restB) ||
        firstA.size() != 1 || firstB.size() != 1)
      return false;
    equal.emplace_back(firstA.front(), firstB.front());
    a = std::move(restA);
    b = std::move(restB);
  }
  return true;
}

/// Cuts the parts until two of them are equal or disjoint. Returns false if that is not possible.
static bool makeAtomic(EqualParts &equal) {
  for (size_t i = 0; i < equal.size(); ++i)
    for (bool second : {false, true})
      for (size_t j = 0; j < equal.size(); ++j)
        for (const AxisRef &other : {equal[j].first, equal[j].second})
          for (int64_t at : {other.pre, other.pre * other.size}) {
            auto &[a, b] = equal[i];
            const AxisRef &cut = second ? b : a;
            if (other.axis != cut.axis || at <= cut.pre || at >= cut.pre * cut.size)
              continue;
            if (at % cut.pre != 0 || cut.size % (at / cut.pre) != 0)
              return false;
            int64_t size = at / cut.pre, rest = cut.size / size;
            equal.emplace_back(AxisRef{a.axis, a.pre * size, rest},
                               AxisRef{b.axis, b.pre * size, rest});
            equal[i].first.size = equal[i].second.size = size;
            return makeAtomic(equal);
          }
  return true;
}

/// The share of the devices, as 1 in so many, whose coordinates agree on the parts.
static int64_t oneInHowMany(const EqualParts &equal) {
  std::vector<AxisList> classes;
  auto classOf = [&](const AxisRef &part) {
    for (size_t i = 0; i < classes.size(); ++i)
      if (std::find(classes[i].begin(), classes[i].end(), part) != classes[i].end())
        return i;
    classes.push_back({part});
    return classes.size() - 1;
  };
  int64_t share = 1;
  for (auto &[a, b] : equal) {
    size_t one = classOf(a), other = classOf(b);
    if (one == other)
      continue;
    share *= a.size;
    classes[one].insert(classes[one].end(), classes[other].begin(), classes[other].end());
    classes[other].clear();
  }
  return share;
}

/// The overlaps of plain parts of equal sizes, if those of one side are made of those of the other
/// in each dimension: a device needs what it has, or the fine part is within the coarse one, if
/// digits of its coordinates agree. In time that does not depend on the devices.
static std::optional<std::vector<Overlap>> overlapsOfEven(const std::vector<Cut> &cuts,
                                                          int64_t devices, bool plain) {
  if (!plain)
    return std::nullopt;
  Overlap nested;
  EqualParts equal;
  for (const Cut &cut : cuts) {
    bool hadFine = cut.had.step < cut.wants.step;
    const DimLayout &fine = hadFine ? cut.had : cut.wants, &coarse = hadFine ? cut.wants : cut.had;
    for (const DimLayout &dim : {fine, coarse})
      if (dim.step <= 0 || dim.step * sizeOf(dim.axes) != cut.extent)
        return std::nullopt;
    AxisList major, minor;
    if (coarse.step % fine.step != 0 || !splitAt(fine.axes, sizeOf(coarse.axes), major, minor) ||
        !addEqualParts(coarse.axes, std::move(major), equal))
      return std::nullopt;
    nested.wanted *= cut.wants.step;
    nested.held *= cut.had.step;
    nested.both *= fine.step;
    nested.parts *= coarse.step / cut.had.step;
  }
  if (!makeAtomic(equal))
    return std::nullopt;
  nested.devices = devices / oneInHowMany(equal);
  std::vector<Overlap> all{nested};
  if (nested.devices < devices)
    all.push_back({nested.wanted, nested.held, 0, nested.parts, devices - nested.devices});
  return all;
}

/// The overlaps in dimensions that are cut over `axes`, device by device.
static std::vector<Overlap> overlapsByDevice(const Mesh &mesh, const std::vector<Cut> &cuts,
                                             const std::vector<int64_t> &axes, bool countsParts) {
  struct Ranges {
    std::vector<std::pair<int64_t, int64_t>> had, wants;
    std::vector<int64_t> parts; ///< by index of `wants`
  };
  std::vector<const AxisList *> lists;
  std::vector<Ranges> ranges(cuts.size());
  for (size_t i = 0; i < cuts.size(); ++i) {
    const Cut &cut = cuts[i];
    lists.insert(lists.end(), {&cut.had.axes, &cut.wants.axes});
    for (int64_t part = 0, count = sizeOf(cut.had.axes); part < count; ++part)
      ranges[i].had.push_back(cut.rangeOf(cut.had, part));
    for (int64_t part = 0, count = sizeOf(cut.wants.axes); part < count; ++part) {
      auto [begin, end] = ranges[i].wants.emplace_back(cut.rangeOf(cut.wants, part));
      ranges[i].parts.push_back(countsParts ? cut.partsIn(begin, end) : 1);
    }
  }
  std::vector<Overlap> all;
  IndexWalk indices(mesh, axes, lists);
  do {
    Overlap here;
    for (size_t i = 0; i < cuts.size(); ++i) {
      int64_t want = indices[2 * i + 1];
      auto [heldFrom, heldTo] = ranges[i].had[indices[2 * i]];
      auto [begin, end] = ranges[i].wants[want];
      here.wanted *= end - begin;
      here.held *= heldTo - heldFrom;
      here.both *= std::max<int64_t>(0, std::min(end, heldTo) - std::max(begin, heldFrom));
      here.parts *= ranges[i].parts[want];
    }
    add(all, here);
  } while (indices.next());
  return all;
}

/// Dimensions without common axes are independent, so the time depends on the devices along the
/// axes of the move, not on all devices of the mesh.
std::vector<Overlap> overlapsOf(const Mesh &mesh, const Layout &source, const Layout &target) {
  const Layout selected = selectLike(source, target);
  // The parts of a source with windows are not counted.
  const bool countsParts = std::all_of(source.dims.begin(), source.dims.end(), isPlain);
  std::vector<Overlap> all{{1, 1, 1, 1, mesh.numDevices()}};
  std::vector<char> isDone(source.dims.size());
  for (size_t first = 0; first < source.dims.size(); ++first) {
    if (isDone[first])
      continue;
    auto [dims, axes] = dependentDims(first, source, target, isDone);
    std::vector<Cut> cuts;
    bool isPlainMove = true;
    for (size_t d : dims) {
      cuts.push_back({selected.dims[d], target.dims[d], target.globalShape[d],
                      std::max<int64_t>(1, source.dims[d].step)});
      isPlainMove = isPlainMove && isPlain(source.dims[d]) && isPlain(target.dims[d]);
    }
    int64_t devices = 1;
    for (int64_t axis : axes)
      devices *= mesh.shape[axis];
    auto classes = overlapsOfEven(cuts, devices, isPlainMove);
    if (!classes && cuts.size() == 1)
      classes = overlapsOfNested(cuts.front(), devices, isPlainMove);
    if (!classes && cuts.size() == 1)
      classes = overlapsOfShifted(cuts.front(), devices, countsParts);
    if (!classes)
      classes = overlapsByDevice(mesh, cuts, axes, countsParts);
    // Of the devices that are alike before, the same share is alike in these dimensions.
    std::vector<Overlap> joined;
    for (const Overlap &a : all)
      for (const Overlap &b : *classes)
        joined.push_back({a.wanted * b.wanted, a.held * b.held, a.both * b.both,
                          countsParts ? a.parts * b.parts : 1, a.devices * b.devices / devices});
    all = std::move(joined);
  }
  return all;
}

ExchangeSize exchangeSizeOf(const Mesh &mesh, const std::vector<Overlap> &overlaps, int64_t held) {
  // One device may send all elements to all others. Far above any plan, counts stop growing before
  // the bytes of an element, or several tensors, exceed 64 bits.
  constexpr double kMost = static_cast<double>(int64_t(1) << 56);
  ExchangeSize size;
  int64_t holders = 0, messages = 0;
  held = std::max<int64_t>(1, held);
  for (const Overlap &overlap : overlaps)
    holders += overlap.held > 0 ? overlap.devices : 0;
  double most = 0;                   // what a holder sends, about
  int64_t shares = 0, remaining = 0; // the same, exactly, and the sum of the remainders
  for (const Overlap &overlap : overlaps) {
    int64_t lacking = overlap.wanted - overlap.both;
    int64_t others = overlap.parts - (overlap.both > 0 ? 1 : 0);
    size.received = std::max(size.received, lacking);
    if (holders > 0) {
      most += static_cast<double>(lacking) / static_cast<double>(holders) *
              static_cast<double>(overlap.devices);
      if (most < kMost) {
        shares += lacking / holders * overlap.devices;
        remaining += lacking % holders * overlap.devices;
      }
    }
    if (lacking > 0)
      messages += overlap.devices * std::max(ceilDiv(lacking, held), others);
  }
  if (holders > 0)
    size.elements = most < kMost ? shares + ceilDiv(remaining, holders) : int64_t(kMost);
  size.elements = std::max(size.received, size.elements);
  size.messages = ceilDiv(messages, mesh.numDevices());
  return size;
}

} // namespace tessera::sharding
