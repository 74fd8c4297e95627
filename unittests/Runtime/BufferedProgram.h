//===- BufferedProgram.h - Two parts of different buffers -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_UNITTESTS_RUNTIME_BUFFEREDPROGRAM_H
#define TESSERA_UNITTESTS_RUNTIME_BUFFEREDPROGRAM_H

#include "Fixtures.h"

namespace tessera::runtime {

/// Six messages: sent in 3 trips of 2, received in 2 trips of 3, on meshes that share a device.
struct BufferedProgram {
  Mesh first = makeMesh({2}, 0, "first"), second = makeMesh({2}, 1, "second");
  ProgramBuilder b;
  int64_t m = b.mesh(first), n = b.mesh(second), p = b.part(m), q = b.part(n);
  Layout full = replicated({2});
  int64_t flag = b.slot(p, DType::i1, Shape{}), x = b.slot(p, DType::f32, full);
  std::vector<int64_t> targets;

  /// `guarded`: the sends are in a branch, so that their number is unknown.
  explicit BufferedProgram(bool guarded) {
    int64_t i = b.slot(p, DType::index, Shape{}), j = b.slot(q, DType::index, Shape{});
    Step branch = b.step(IfStep{flag, {}, {}});
    Step outer = b.step(LoopStep{i, {0, {}}, {3, {}}, {1, {}}, {}});
    for (int64_t id : {0, 1})
      std::get<LoopStep>(outer.action)
          .body.push_back(
              b.step(TransferStep{true, m, n, {{x, -1, DType::f32, {2}, full, full, {}}}, 0, id}));
    if (guarded) {
      std::get<IfStep>(branch.action).thenSteps.push_back(outer);
      b.program.parts[p].steps.push_back(branch);
    } else {
      b.program.parts[p].steps.push_back(outer);
    }
    for (int64_t id : {1, 0}) { // the later message first
      int64_t y = b.slot(q, DType::f32, full);
      targets.push_back(y);
      Step loop = b.step(LoopStep{j, {0, {}}, {3, {}}, {1, {}}, {}});
      std::get<LoopStep>(loop.action)
          .body.push_back(
              b.step(TransferStep{false, m, n, {{-1, y, DType::f32, {2}, full, full, {}}}, 0, id}));
      b.program.parts[q].steps.push_back(loop);
    }
  }
};

} // namespace tessera::runtime

#endif // TESSERA_UNITTESTS_RUNTIME_BUFFEREDPROGRAM_H
