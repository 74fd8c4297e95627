//===- Collective.cpp - Kinds of collectives and their traffic ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GridTraffic.h"
#include "Overlaps.h"

#include "tessera/Sharding/Buffers.h"
#include "tessera/Sharding/CollectiveTraits.h"

#include <algorithm>
#include <iterator>

namespace tessera::sharding {

/// In the order of the kinds.
static constexpr CollectiveTraits kTraits[] = {
    {.name = "slice", .dim = "dim", .rounds = 0},
    {.name = "all_reduce", .reduces = true, .rounds = 2, .shares = 2},
    {.name = "all_gather", .dim = "dim", .isRelayed = true, .rounds = 1, .shares = 1},
    {.name = "reduce_scatter", .dim = "dim", .reduces = true, .rounds = 1, .shares = 1},
    {.name = "all_to_all", .dim = "concat_dim", .splitDim = "split_dim", .rounds = 1, .shares = 1},
    {.name = "permute"},
    {.name = "broadcast", .isRelayed = true, .rounds = 1},
    {.name = "scatter", .dim = "dim"},
    {.name = "gather", .dim = "dim"},
    {.name = "reduce", .reduces = true, .isRelayed = true, .rounds = 1},
    {.name = "halo_exchange", .dim = "dim"},
    {.name = "exchange"},
    {.name = "transfer"},
};

const CollectiveTraits &traitsOf(CollectiveKind kind) {
  return kTraits[static_cast<int>(kind)];
}

std::string_view toString(CollectiveKind kind) {
  return traitsOf(kind).name;
}

std::optional<CollectiveKind> parseCollectiveKind(std::string_view text) {
  for (size_t i = 0; i < std::size(kTraits); ++i)
    if (kTraits[i].name == text)
      return static_cast<CollectiveKind>(i);
  return std::nullopt;
}

Traffic &Traffic::operator+=(const Traffic &other) {
  bytes += other.bytes;
  wireBytes += other.wireBytes;
  count += other.count;
  messages += other.messages;
  written += other.written;
  added += other.added;
  return *this;
}

Copies &Copies::operator+=(const Copies &other) {
  bytes += other.bytes;
  strided += other.strided;
  return *this;
}

/// Bytes at the start of a run that are copied at the rate of short runs. On an x86-64 server
/// gathers in runs of 1 KiB take as long as in runs of 128 bytes, and in runs of 8 KiB 1.5 times as
/// long as in one run.
static constexpr int64_t kRunStart = 1024;

int64_t Traffic::runOf(std::span<const int64_t> source, std::span<const int64_t> target) {
  int64_t run = 1;
  for (size_t d = source.size(); d-- > 0;) {
    run *= std::min(source[d], target[d]);
    if (source[d] != target[d])
      break;
  }
  return std::max<int64_t>(run, 1);
}

void Traffic::setCopies(CollectiveKind kind, int64_t bytesPerElement,
                        std::span<const int64_t> source, std::span<const int64_t> target) {
  int64_t run = runOf(source, target) * bytesPerElement;
  auto copiesOf = [&](std::span<const int64_t> shape) {
    int64_t bytes = bytesPerElement;
    for (int64_t extent : shape)
      bytes *= extent;
    return Copies{bytes, run <= kRunStart ? bytes : bytes / run * kRunStart};
  };
  written = copiesOf(target);
  added = {};
  if (kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter ||
      kind == CollectiveKind::reduce)
    added = copiesOf(source);
}

/// Max over devices of the elements that a device receives in a gather.
static int64_t gatheredElements(const Mesh &whole, const Layout &wholeSource,
                                const Layout &wholeTarget) {
  auto isEven = [](const Layout &layout) {
    return std::all_of(layout.dims.begin(), layout.dims.end(), [&](const DimLayout &dim) {
      return dim.axes.empty() ||
             (dim.offset == 0 && dim.divisor == 1 && dim.length == dim.step &&
              dim.step * sizeOf(dim.axes) == layout.globalShape[&dim - layout.dims.data()]);
    });
  };
  if (isEven(wholeSource) && isEven(wholeTarget))
    return wholeTarget.maxValidElements() - wholeSource.maxValidElements();
  MeshLayouts used = withoutIdleAxes(whole, {&wholeSource, &wholeTarget});
  const Mesh &mesh = used.mesh;
  const Layout &source = used.layouts[0], &target = used.layouts[1];
  int64_t most = 0;
  for (int64_t position = 0; position < mesh.numDevices(); ++position) {
    std::vector<int64_t> coordinate = mesh.coordinate(position);
    most = std::max(most, target.valid(mesh, coordinate).numElements() -
                              source.valid(mesh, coordinate).numElements());
  }
  return most;
}

bool isByBoxes(CollectiveKind kind) {
  return kind == CollectiveKind::halo_exchange || kind == CollectiveKind::exchange ||
         kind == CollectiveKind::transfer;
}

/// `bytes` * `count` / `n`, rounded down. The product with a count of devices may exceed 64 bits.
static int64_t shareOf(int64_t bytes, int64_t count, int64_t n) {
  return bytes / n * count + bytes % n * count / n;
}

static Traffic sentBy(CollectiveKind kind, int64_t groupSize, const Buffers &buffers) {
  int64_t n = groupSize;
  int64_t operand = buffers.operand * buffers.bytesPerElement;
  int64_t result = buffers.result * buffers.bytesPerElement;
  if (n == 1)
    return {operand, 0, 0, 0}; // a group of one does not communicate
  switch (kind) {
  case CollectiveKind::all_reduce:
    return {operand, shareOf(2 * operand, n - 1, n), 1, 2 * (n - 1)};
  case CollectiveKind::all_gather:
    return {result, buffers.gathered * buffers.bytesPerElement, 1, n - 1};
  case CollectiveKind::reduce_scatter:
  case CollectiveKind::all_to_all:
  case CollectiveKind::scatter:
    return {operand, shareOf(operand, n - 1, n), 1, n - 1};
  case CollectiveKind::gather:
    return {result, shareOf(result, n - 1, n), 1, n - 1};
  case CollectiveKind::permute:
  case CollectiveKind::broadcast:
  case CollectiveKind::reduce:
    return {operand, operand, 1, 1};
  default:
    return {operand, 0, 0, 0};
  }
}

Traffic trafficOf(CollectiveKind kind, int64_t groupSize, const Buffers &buffers) {
  Traffic traffic = sentBy(kind, groupSize, buffers);
  // A local contribution begins a sum: it is written where the sum is computed.
  bool isCut = kind == CollectiveKind::slice && groupSize > 1 && !buffers.makesPartial;
  if (traffic.count > 0 || isCut)
    traffic.setCopies(kind, buffers.bytesPerElement, buffers.sourceShape, buffers.targetShape);
  return traffic;
}

/// With more devices an exchange is sized in closed form.
static constexpr int64_t kMaxDevicesByBoxes = 1024;

/// The size of one exchange of several tensors, in bytes (elements of 1 byte). Axes of a common
/// mesh that no layout uses are ignored.
static ExchangeSize exchangeSizeOf(const Mesh &sourceMesh,
                                   const std::vector<const Layout *> &sources,
                                   const Mesh &targetMesh,
                                   const std::vector<const Layout *> &targets,
                                   const std::vector<int64_t> &bytesPerElement) {
  if (sourceMesh == targetMesh) {
    std::vector<const Layout *> all = sources;
    all.insert(all.end(), targets.begin(), targets.end());
    if (MeshLayouts used = withoutIdleAxes(sourceMesh, all);
        used.mesh.numAxes() < sourceMesh.numAxes()) {
      std::vector<const Layout *> ownSources, ownTargets;
      for (size_t i = 0; i < sources.size(); ++i) {
        ownSources.push_back(&used.layouts[i]);
        ownTargets.push_back(&used.layouts[sources.size() + i]);
      }
      return exchangeSizeOf(used.mesh, ownSources, used.mesh, ownTargets, bytesPerElement);
    }
  }
  auto isReduced = [&](size_t i) { return sources[i]->partial != targets[i]->partial; };
  ExchangeSize size;
  ExchangeTraffic total; // of tensors that are counted by device
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sourceMesh == targetMesh && sourceMesh.numDevices() > kMaxDevicesByBoxes && !isReduced(i)) {
      ExchangeSize own =
          exchangeSizeOf(sourceMesh, overlapsOf(sourceMesh, *sources[i], *targets[i]),
                         selectLike(*sources[i], *targets[i]).maxValidElements());
      size.elements += own.elements * bytesPerElement[i];
      size.messages = std::max(size.messages, own.messages);
      continue;
    }
    std::optional<ExchangeTraffic> counted;
    if (sourceMesh == targetMesh)
      counted = gridTraffic(sourceMesh, *sources[i], *targets[i]);
    if (!counted)
      counted = exchangeTraffic(sourceMesh, targetMesh,
                                redistribute(sourceMesh, *sources[i], targetMesh, *targets[i]));
    const ExchangeTraffic &boxes = *counted;
    total.received.resize(targetMesh.numDevices());
    total.sent.resize(sourceMesh.numDevices());
    for (size_t d = 0; d < total.received.size(); ++d)
      total.received[d] += boxes.received[d] * bytesPerElement[i];
    for (size_t d = 0; d < total.sent.size(); ++d)
      total.sent[d] += boxes.sent[d] * bytesPerElement[i];
    size.messages = std::max(size.messages, boxes.busiestMessages());
  }
  size.elements += total.busiest();
  return size;
}

Traffic trafficOf(CollectiveKind kind, int64_t groupSize, int64_t bytesPerElement,
                  const Mesh &sourceMesh, const Layout &whole, const Mesh &targetMesh,
                  const Layout &target) {
  const Layout source = selectLike(whole, target);
  std::vector<int64_t> sourceShape = source.localShape(), targetShape = target.localShape();
  Buffers buffers{bytesPerElement,
                  source.maxValidElements(),
                  target.maxValidElements(),
                  0,
                  sourceShape,
                  targetShape,
                  target.partial.size() > source.partial.size()};
  if (!isByBoxes(kind)) {
    if (kind == CollectiveKind::all_gather)
      buffers.gathered = gatheredElements(sourceMesh, source, target);
    return trafficOf(kind, groupSize, buffers);
  }
  ExchangeSize sent = exchangeSizeOf(sourceMesh, {&whole}, targetMesh, {&target}, {1});
  // Elements that every device already holds are not sent.
  bool isHalo = kind == CollectiveKind::halo_exchange;
  Traffic traffic;
  traffic.count = sent.elements == 0 ? 0 : isHalo ? 2 : 1;
  traffic.wireBytes = sent.elements * bytesPerElement;
  traffic.bytes = isHalo ? traffic.wireBytes : buffers.operand * bytesPerElement;
  traffic.messages = sent.messages;
  // If every device has the elements that it needs, an exchange is a slice.
  if (traffic.count > 0 || (kind == CollectiveKind::exchange && source != target))
    traffic.setCopies(kind, bytesPerElement, sourceShape, targetShape);
  return traffic;
}

Traffic trafficOf(CollectiveKind kind, int64_t groupSize, const Mesh &sourceMesh,
                  const Mesh &targetMesh, std::span<const MovedTensor> tensors) {
  Traffic total;
  for (const MovedTensor &tensor : tensors) {
    Traffic one = trafficOf(kind, groupSize, tensor.bytesPerElement, sourceMesh, tensor.source,
                            targetMesh, tensor.target);
    total.bytes += one.bytes;
    total.wireBytes += one.wireBytes;
    total.count = std::max(total.count, one.count);
    total.messages = std::max(total.messages, one.messages);
    total.written += one.written;
    total.added += one.added;
  }
  if (isByBoxes(kind) && tensors.size() > 1) {
    std::vector<const Layout *> sources, targets;
    std::vector<int64_t> bytesPerElement;
    for (const MovedTensor &tensor : tensors) {
      sources.push_back(&tensor.source);
      targets.push_back(&tensor.target);
      bytesPerElement.push_back(tensor.bytesPerElement);
    }
    total.wireBytes =
        exchangeSizeOf(sourceMesh, sources, targetMesh, targets, bytesPerElement).elements;
  }
  return total;
}

} // namespace tessera::sharding
