//===- Fixtures.h - Small programs for these tests --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_UNITTESTS_RUNTIME_FIXTURES_H
#define TESSERA_UNITTESTS_RUNTIME_FIXTURES_H

#include "tessera/Runtime/Artifact/Artifact.h"
#include "tessera/Runtime/Execution/Executor.h"
#include "tessera/Support/CpuFeatures.h"

#include <gtest/gtest.h>
#include <numeric>

namespace tessera::runtime {

using sharding::AxisList;
using sharding::AxisRef;
using sharding::CollectiveKind;
using sharding::Layout;
using sharding::Mesh;
using sharding::PartialAxis;
using sharding::ReduceKind;

/// Opens a program on the backend named on the command line (Main.cpp).
Expected<std::unique_ptr<Executor>> openUnderTest(std::shared_ptr<const Artifact> artifact,
                                                  const BackendOptions &options);

#ifdef TEST_KERNELS
/// The kernels of TEST_KERNELS, each of so many tasks, for this machine.
inline CpuKernels kernelsForTests(size_t count, int64_t tasks = 1) {
  return {"any", hostArchitecture(), {}, std::vector(count, tasks), *readFile(TEST_KERNELS)};
}
#endif

/// A mesh with axes a, b, c, … and ids counted from `firstId`.
inline Mesh makeMesh(const Shape &shape, int64_t firstId = 0, std::string name = "m") {
  Mesh mesh{std::move(name), shape, {}, {}};
  int64_t devices = 1;
  for (int64_t extent : shape) {
    mesh.axisNames.push_back(std::string(1, static_cast<char>('a' + mesh.axisNames.size())));
    devices *= extent;
  }
  mesh.processIds = sharding::DeviceIds::range(devices, firstId);
  return mesh;
}

inline AxisRef whole(const Mesh &mesh, int64_t axis) {
  return AxisRef::full(mesh, axis);
}

inline Layout layoutOf(const Shape &global, std::vector<AxisList> dims,
                       std::vector<PartialAxis> partial = {}) {
  return sharding::makeLayout({std::move(dims), std::move(partial), {}, {}}, global);
}
inline Layout replicated(const Shape &global) {
  return layoutOf(global, std::vector<AxisList>(global.size()));
}

/// Builds a Program piece by piece; slots overlap only on request.
class ProgramBuilder {
public:
  Program program;

  int64_t mesh(Mesh mesh) {
    program.meshes.push_back(std::move(mesh));
    return static_cast<int64_t>(program.meshes.size()) - 1;
  }
  int64_t part(int64_t mesh) {
    program.parts.push_back({"part" + std::to_string(program.parts.size()), mesh, 0, 0, {}, {}, {}});
    return static_cast<int64_t>(program.parts.size()) - 1;
  }
  int64_t slot(int64_t part, DType dtype, const Shape &shape) {
    Part &p = program.parts[part];
    int64_t bytes = *elementCount(shape) * sizeOf(dtype);
    p.slots.push_back({"", Slot::Space::arena, p.arenaBytes, bytes, dtype, shape});
    p.arenaBytes += (bytes + 63) / 64 * 64;
    return static_cast<int64_t>(p.slots.size()) - 1;
  }
  int64_t slot(int64_t part, DType dtype, const Layout &layout) {
    return slot(part, dtype, layout.localShape());
  }
  /// An argument with one home in a new slot; returns the slot.
  int64_t argument(std::string name, int64_t part, DType dtype, const Layout &layout) {
    int64_t index = slot(part, dtype, layout);
    program.arguments.push_back(
        {std::move(name), dtype, layout.globalShape, {}, {{part, index, layout}}});
    return index;
  }
  void result(std::string name, int64_t part, int64_t slot, const Layout &layout) {
    program.results.push_back({std::move(name),
                               program.parts[part].slots[slot].dtype,
                               layout.globalShape,
                               {},
                               {part, slot, layout}});
  }
  /// Numbers a step; callers number nested lists with `next`.
  template <typename Action> Step step(Action action) {
    return {next(), "test.mlir:" + std::to_string(order), "", std::move(action)};
  }
  template <typename Action> void add(int64_t part, Action action) {
    program.parts[part].steps.push_back(step(std::move(action)));
  }
  int64_t next() { return order++; }
  int64_t nextId() { return id++; }

  CollectiveStep collective(CollectiveKind kind, int64_t mesh, int64_t src, int64_t dst,
                            DType dtype, const Layout &source, const Layout &target) {
    CollectiveStep step;
    step.kind = kind;
    step.mesh = mesh;
    step.operands = {{src, dst, dtype, source.globalShape, source, target, {}}};
    step.id = nextId();
    return step;
  }

private:
  int64_t order = 0;
  int64_t id = 0;
};

} // namespace tessera::runtime

#endif // TESSERA_UNITTESTS_RUNTIME_FIXTURES_H
