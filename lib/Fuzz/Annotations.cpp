//===- Annotations.cpp - Random meshes and shardings ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Annotations.h"

#include "mlir/AsmParser/AsmParser.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::fuzz;

//===----------------------------------------------------------------------===//
// Meshes
//===----------------------------------------------------------------------===//

sharding::Mesh Annotations::mesh(std::string name, std::string axisPrefix) {
  sharding::Mesh mesh;
  mesh.name = std::move(name);
  int64_t axes = random.between(1, options.maxAxes), devices = 1;
  for (int64_t axis = 0; axis < axes; ++axis) {
    int64_t most = options.maxDevices / devices;
    // Extents of 1 and primes are legal and easily forgotten.
    int64_t extent = random.percent(15) ? 1 : std::min(most, random.between(2, axes == 1 ? 12 : 6));
    mesh.shape.push_back(extent);
    mesh.axisNames.push_back(axisPrefix + std::to_string(axis));
    devices *= extent;
  }
  mesh.processIds = sharding::DeviceIds::range(devices);
  if (random.percent(15)) {
    std::vector<int64_t> ids = mesh.processIds.vec();
    random.shuffle(ids);
    mesh.processIds = std::move(ids);
  }
  return mesh;
}

sharding::Mesh Annotations::meshBeside(const sharding::Mesh &first, std::string name) {
  sharding::Mesh second = mesh(std::move(name), "b");
  int64_t offset = 0;
  if (random.percent(50)) // other devices; else those of the first as far as they suffice
    offset = first.numDevices();
  std::vector<int64_t> ids = second.processIds.vec();
  for (int64_t &id : ids)
    id += offset;
  second.processIds = std::move(ids);
  return second;
}

//===----------------------------------------------------------------------===//
// Shardings
//===----------------------------------------------------------------------===//

std::string Annotations::partialKind(PartialChoice partial) {
  if (partial.avg && random.percent(20))
    return "avg";
  return random.percent(50) ? "sum" : random.pick<std::string>({"max", "min", "prod"});
}

std::string Annotations::byAxis(const sharding::Mesh &mesh, int64_t rank, PartialChoice partial) {
  // Omitted placements are left to the compiler.
  int64_t given = random.percent(20) ? random.between(1, mesh.numAxes()) : mesh.numAxes();
  std::string kind = partialKind(partial);
  std::vector<std::string> placements(given);
  std::vector<std::vector<int64_t>> axesOf(rank);
  for (int64_t axis = 0; axis < given; ++axis) {
    int64_t choice = random.between(1, 100);
    if (choice <= 50 && rank > 0)
      axesOf[random.between(0, rank - 1)].push_back(axis);
    else if (choice <= 75 && partial.allowed)
      placements[axis] = "partial(" + kind + ")";
    else if (choice <= 85)
      placements[axis] = "replicate";
    else
      placements[axis] = "?";
  }
  for (int64_t dim = 0; dim < rank; ++dim) {
    std::vector<int64_t> order(axesOf[dim].size());
    for (size_t i = 0; i < order.size(); ++i)
      order[i] = static_cast<int64_t>(i);
    bool withOrder = order.size() > 1 && random.percent(50);
    random.shuffle(order);
    std::string written = std::to_string(random.percent(10) ? dim - rank : dim);
    for (auto [axis, place] : llvm::zip_equal(axesOf[dim], order))
      placements[axis] = "shard(" + written +
                         (withOrder ? ", order = " + std::to_string(place) : std::string()) + ")";
  }
  return "[" + llvm::join(placements, ", ") + "]";
}

std::string Annotations::byDimension(const sharding::Mesh &mesh, int64_t rank,
                                     PartialChoice partial) {
  // An axis is used whole, or as two independent parts.
  std::vector<std::string> parts;
  for (int64_t axis = 0; axis < mesh.numAxes(); ++axis) {
    int64_t extent = mesh.shape[axis];
    std::string name = "\"" + mesh.axisNames[axis] + "\"";
    std::vector<int64_t> cuts;
    for (int64_t pre = 2; pre < extent; ++pre)
      if (extent % pre == 0)
        cuts.push_back(pre);
    if (cuts.empty() || random.percent(50)) {
      parts.push_back(name);
      continue;
    }
    int64_t cut = random.pick(cuts);
    parts.push_back(name + ":(1)" + std::to_string(cut));
    parts.push_back(name + ":(" + std::to_string(cut) + ")" + std::to_string(extent / cut));
  }
  random.shuffle(parts);
  std::string kind = partialKind(partial);
  std::vector<std::vector<std::string>> dims(rank);
  std::vector<std::string> reduced, open;
  for (const std::string &part : parts) {
    int64_t choice = random.between(1, 100);
    if (choice <= 60 && rank > 0)
      dims[random.between(0, rank - 1)].push_back(part);
    else if (choice <= 80 && partial.allowed)
      reduced.push_back(kind + "(" + part + ")");
    else if (choice <= 85)
      open.push_back(part);
  }
  std::vector<std::string> lists;
  for (const std::vector<std::string> &dim : dims)
    lists.push_back("[" + llvm::join(dim, ", ") + "]");
  std::string text = "dims = [" + llvm::join(lists, ", ") + "]";
  if (!reduced.empty())
    text += ", partial = [" + llvm::join(reduced, ", ") + "]";
  if (!open.empty())
    text += ", open = [" + llvm::join(open, ", ") + "]";
  return text;
}

static dist::ShardingAttr parse(MLIRContext *context, const std::string &text) {
  auto attr = dyn_cast_or_null<dist::ShardingAttr>(parseAttribute(text, context));
  assert(attr && "what is written here parses");
  return attr;
}

dist::ShardingAttr Annotations::sharding(MLIRContext *context, const sharding::Mesh &mesh,
                                         int64_t rank, PartialChoice partial) {
  std::string text = "#dist.sharding<@" + mesh.name + ", ";
  text += random.percent(65) ? byAxis(mesh, rank, partial) : byDimension(mesh, rank, partial);
  if (random.percent(10))
    text += ", priority = " + std::to_string(random.between(0, 2));
  return parse(context, text + ">");
}

dist::ShardingAttr Annotations::open(MLIRContext *context, const sharding::Mesh &mesh) {
  return parse(context, "#dist.sharding<@" + mesh.name + ", []>");
}

std::pair<dist::ShardingAttr, int64_t> Annotations::rows(MLIRContext *context,
                                                         const sharding::Mesh &mesh) {
  std::vector<std::string> placements(mesh.numAxes(), "replicate");
  int64_t axis = random.between(0, mesh.numAxes() - 1);
  placements[axis] = "shard(0)";
  return {
      parse(context, "#dist.sharding<@" + mesh.name + ", [" + llvm::join(placements, ", ") + "]>"),
      mesh.shape[axis]};
}
