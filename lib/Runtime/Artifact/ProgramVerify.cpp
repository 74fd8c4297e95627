//===- ProgramVerify.cpp - Checks of a program's declarations -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Verifier.h"

#include <algorithm>

namespace tessera::runtime {

using sharding::AxisList;
using sharding::AxisRef;
using sharding::Layout;
using sharding::Mesh;
using sharding::ReduceKind;

/// Far beyond any machine, small enough that products of two stay in range.
static constexpr int64_t kHuge = int64_t(1) << 48;
static constexpr int64_t kMaxDevices = int64_t(1) << 20;

static std::string text(int64_t value) {
  return std::to_string(value);
}

static std::string at(const char *list, size_t index) {
  return "program." + std::string(list) + "[" + std::to_string(index) + "]";
}

Status Verifier::run() {
  TESSERA_RETURN_IF_ERROR(checkMeshes());
  if (!program.kernelBytes.empty() && program.kernelBytes.size() != program.kernels.size())
    return Status::error("program.kernel_bytes: there are " + text(program.kernelBytes.size()) +
                         " entries for " + text(program.kernels.size()) + " kernels");
  for (size_t i = 0; i < program.parts.size(); ++i)
    TESSERA_RETURN_IF_ERROR(checkPart(program.parts[i]).in(at("parts", i)));
  TESSERA_RETURN_IF_ERROR(checkArguments());
  TESSERA_RETURN_IF_ERROR(checkResults());
  return StepVerifier(*this).run();
}

static Status checkMeshItself(const Mesh &mesh) {
  int64_t devices = 1;
  for (int64_t extent : mesh.shape) {
    if (extent < 1 || extent > kMaxDevices / devices)
      return Status::error("the mesh has an axis of " + text(extent) + ", or more than " +
                           text(kMaxDevices) + " devices");
    devices *= extent;
  }
  if (mesh.axisNames.size() != mesh.shape.size())
    return Status::error(text(mesh.axisNames.size()) + " axis names for " +
                         text(mesh.shape.size()) + " axes");
  if (static_cast<int64_t>(mesh.processIds.size()) != devices)
    return Status::error(text(mesh.processIds.size()) + " process ids for " + text(devices) +
                         " devices");
  std::set<int64_t> ids;
  for (int64_t id : mesh.processIds)
    if (id < 0 || id >= kMaxDevices || !ids.insert(id).second)
      return Status::error("process id " + text(id) + " is negative, too large or a duplicate");
  return {};
}

Status Verifier::checkMeshes() const {
  std::set<std::string> names;
  for (size_t i = 0; i < program.meshes.size(); ++i) {
    TESSERA_RETURN_IF_ERROR(checkMeshItself(program.meshes[i]).in(at("meshes", i)));
    if (!names.insert(program.meshes[i].name).second)
      return Status::error("duplicate mesh name '" + program.meshes[i].name + "'")
          .in(at("meshes", i));
  }
  return {};
}

Status Verifier::checkMesh(int64_t mesh) const {
  if (mesh < 0 || mesh >= static_cast<int64_t>(program.meshes.size()))
    return Status::error("mesh " + text(mesh) + " does not exist, the program has " +
                         text(program.meshes.size()));
  return {};
}

Status Verifier::checkMeshOfPart(const Part &part, int64_t mesh) const {
  TESSERA_RETURN_IF_ERROR(checkMesh(mesh));
  if (mesh == part.mesh)
    return {};
  std::vector<int64_t> ids = program.meshes[mesh].processIds.vec();
  std::vector<int64_t> own = program.meshes[part.mesh].processIds.vec();
  std::sort(ids.begin(), ids.end());
  std::sort(own.begin(), own.end());
  if (ids != own)
    return Status::error("mesh '" + program.meshes[mesh].name +
                         "' has other devices than the part's mesh '" +
                         program.meshes[part.mesh].name + "'");
  return {};
}

Status Verifier::checkAxes(const Mesh &mesh, const AxisList &axes) const {
  for (const AxisRef &axis : axes) {
    bool exists = axis.axis >= 0 && axis.axis < mesh.numAxes();
    bool fits = exists && axis.pre >= 1 && axis.size >= 1 && axis.pre <= mesh.shape[axis.axis] &&
                axis.size <= mesh.shape[axis.axis] &&
                mesh.shape[axis.axis] % (axis.pre * axis.size) == 0;
    if (!fits)
      return Status::error("[" + text(axis.axis) + ", " + text(axis.pre) + ", " + text(axis.size) +
                           "] is not a part of an axis of mesh '" + mesh.name + "'");
  }
  return {};
}

Status Verifier::checkSlotInterval(const Part &part, const Slot &slot) const {
  int64_t limit =
      slot.space == Slot::Space::arena ? part.arenaBytes - part.packedBytes : constantBytes;
  if (slot.offset < 0 || slot.bytes < 0 || slot.offset > limit || slot.bytes > limit - slot.offset)
    return Status::error("[" + text(slot.offset) + ", +" + text(slot.bytes) +
                         ") lies outside the " +
                         (slot.space == Slot::Space::arena ? "arena of " : "constants of ") +
                         text(limit) + " bytes");
  if (slot.offset % sizeOf(slot.dtype) != 0)
    return Status::error("offset " + text(slot.offset) + " is not a multiple of the element size");
  auto elements = elementCount(slot.shape);
  if (!elements || *elements > slot.bytes / sizeOf(slot.dtype))
    return Status::error(typeText(slot.dtype, slot.shape) + " does not fit into " +
                         text(slot.bytes) + " bytes");
  return {};
}

Status Verifier::checkPart(const Part &part) const {
  TESSERA_RETURN_IF_ERROR(checkMesh(part.mesh));
  if (part.arenaBytes < 0 || part.arenaBytes > kHuge)
    return Status::error("arena_bytes " + text(part.arenaBytes) + " is out of range");
  if (part.packedBytes < 0 || part.packedBytes > part.arenaBytes || part.packedBytes % 64 != 0)
    return Status::error("packed_bytes " + text(part.packedBytes) +
                         " is not a multiple of 64 from 0 to arena_bytes, " +
                         text(part.arenaBytes));
  for (size_t i = 0; i < part.slots.size(); ++i)
    TESSERA_RETURN_IF_ERROR(checkSlotInterval(part, part.slots[i]).in("slots[" + text(i) + "]"));
  for (size_t i = 0; i < part.coordinates.size(); ++i) {
    std::string where = "coordinates[" + text(i) + "]";
    TESSERA_RETURN_IF_ERROR(checkIndexSlot(part, part.coordinates[i].slot).in(where));
    int64_t mesh = part.coordinates[i].mesh.value_or(part.mesh);
    TESSERA_RETURN_IF_ERROR(checkMeshOfPart(part, mesh).in(where));
    TESSERA_RETURN_IF_ERROR(checkAxes(program.meshes[mesh], part.coordinates[i].axes).in(where));
  }
  return {};
}

Status Verifier::checkSlot(const Part &part, int64_t slot, Use use) const {
  if (slot < 0 || slot >= static_cast<int64_t>(part.slots.size()))
    return Status::error("slot " + text(slot) + " does not exist, the part has " +
                         text(part.slots.size()));
  if (use == Use::write && part.slots[slot].space == Slot::Space::constant)
    return Status::error("slot " + text(slot) + " is a constant and cannot be written");
  return {};
}

Status Verifier::checkIndexSlot(const Part &part, int64_t slot) const {
  TESSERA_RETURN_IF_ERROR(checkSlot(part, slot, Use::write));
  if (part.slots[slot].dtype != DType::index || part.slots[slot].bytes < 8)
    return Status::error("slot " + text(slot) + " does not hold one index");
  return {};
}

Status Verifier::checkLayout(const Mesh &mesh, const Layout &layout, DType dtype) const {
  if (layout.dims.size() != layout.globalShape.size())
    return Status::error("the layout has " + text(layout.dims.size()) +
                         " dimensions, the tensor has " + text(layout.globalShape.size()));
  auto elements = elementCount(layout.globalShape);
  if (!elements || *elements > kHuge)
    return Status::error("the shape of the tensor is negative or too large");
  AxisList used;
  auto use = [&](const AxisRef &axis) -> Status {
    TESSERA_RETURN_IF_ERROR(checkAxes(mesh, {axis}));
    if (axis.size > 1 && sharding::overlapsAny(used, axis))
      return Status::error("axis " + sharding::toString(mesh, axis) + " is used twice in a layout");
    used.push_back(axis);
    return {};
  };
  for (const sharding::DimLayout &dim : layout.dims) {
    for (const AxisRef &axis : dim.axes)
      TESSERA_RETURN_IF_ERROR(use(axis));
    const int64_t parts = sharding::sizeOf(dim.axes),
                  mostSteps = kHuge / std::max<int64_t>(1, parts);
    if (dim.length < 0 || dim.length > kHuge || dim.step < -mostSteps || dim.step > mostSteps ||
        dim.offset < -kHuge || dim.offset > kHuge || dim.divisor < 1 || dim.divisor > kHuge)
      return Status::error(
          "a layout of " + text(parts) + " parts has step " + text(dim.step) + ", offset " +
          text(dim.offset) + ", length " + text(dim.length) + " and divisor " + text(dim.divisor) +
          "; lengths, offsets, divisors and the steps of all parts are at most 2^48");
  }
  auto linear = [](ReduceKind kind) { return kind == ReduceKind::sum || kind == ReduceKind::avg; };
  for (const sharding::PartialAxis &part : layout.partial) {
    TESSERA_RETURN_IF_ERROR(use(part.axis));
    if (part.kind == ReduceKind::avg && !isFloat(dtype))
      return Status::error("avg of " + std::string(toString(dtype)) + "; integers have no average");
    ReduceKind first = layout.partial.front().kind;
    if (part.kind != first && !(linear(part.kind) && linear(first)))
      return Status::error(
          "a layout is partial with different reductions; only sum and avg can be combined");
  }
  if (!elementCount(layout.localShape()))
    return Status::error("the local shape of a layout is too large");
  return {};
}

Status Verifier::checkBuffer(const Part &part, int64_t slot, Use use, const Layout &layout,
                             DType dtype) const {
  TESSERA_RETURN_IF_ERROR(checkSlot(part, slot, use));
  const Slot &buffer = part.slots[slot];
  if (buffer.dtype != dtype)
    return Status::error("slot " + text(slot) + " has elements of " +
                         std::string(toString(buffer.dtype)) + ", not " +
                         std::string(toString(dtype)));
  int64_t elements = *elementCount(layout.localShape());
  if (elements > buffer.bytes / sizeOf(dtype))
    return Status::error("a device's " + typeText(dtype, layout.localShape()) +
                         " does not fit into slot " + text(slot) + " of " + text(buffer.bytes) +
                         " bytes");
  return {};
}

Status Verifier::checkHome(const Home &home, Use use, DType dtype) const {
  if (home.part < 0 || home.part >= static_cast<int64_t>(program.parts.size()))
    return Status::error("part " + text(home.part) + " does not exist, the program has " +
                         text(program.parts.size()));
  const Part &part = program.parts[home.part];
  int64_t mesh = home.mesh.value_or(part.mesh);
  TESSERA_RETURN_IF_ERROR(checkMeshOfPart(part, mesh));
  TESSERA_RETURN_IF_ERROR(checkLayout(program.meshes[mesh], home.layout, dtype));
  return checkBuffer(part, home.slot, use, home.layout, dtype);
}

Status Verifier::checkArguments() const {
  std::set<std::string> names;
  for (size_t i = 0; i < program.arguments.size(); ++i) {
    const Argument &argument = program.arguments[i];
    std::string where = at("arguments", i);
    if (argument.name.empty() || !names.insert(argument.name).second)
      return Status::error("the name '" + argument.name + "' is empty or taken").in(where);
    if (!elementCount(argument.globalShape))
      return Status::error("the shape is negative or too large").in(where);
    if (argument.range && (*argument.range)[0] >= (*argument.range)[1])
      return Status::error("the range is empty").in(where);
    for (const Home &home : argument.homes) {
      if (home.layout.globalShape != argument.globalShape)
        return Status::error("the shape of a home's layout differs from that of the argument")
            .in(where);
      TESSERA_RETURN_IF_ERROR(checkHome(home, Use::write, argument.dtype).in(where));
    }
  }
  return {};
}

Status Verifier::checkResults() const {
  std::set<std::string> names;
  std::set<int64_t> fed;
  for (size_t i = 0; i < program.results.size(); ++i) {
    const Result &result = program.results[i];
    std::string where = at("results", i);
    if (result.name.empty() || !names.insert(result.name).second)
      return Status::error("the name '" + result.name + "' is empty or taken").in(where);
    if (result.home.layout.globalShape != result.globalShape)
      return Status::error("the shape of the home's layout differs from that of the result")
          .in(where);
    TESSERA_RETURN_IF_ERROR(checkHome(result.home, Use::read, result.dtype).in(where));
    if (!result.feeds)
      continue;
    if (*result.feeds < 0 || *result.feeds >= static_cast<int64_t>(program.arguments.size()))
      return Status::error("feeds argument " + text(*result.feeds) + ", the program has " +
                           text(program.arguments.size()))
          .in(where);
    const Argument &argument = program.arguments[*result.feeds];
    if (argument.dtype != result.dtype || argument.globalShape != result.globalShape)
      return Status::error("feeds argument '" + argument.name + "' of another type").in(where);
    if (!fed.insert(*result.feeds).second)
      return Status::error("argument '" + argument.name + "' is fed twice").in(where);
  }
  return {};
}

Status verify(const Program &program, int64_t constantBytes) {
  return Verifier(program, constantBytes).run();
}

} // namespace tessera::runtime
