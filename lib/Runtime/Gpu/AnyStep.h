//===- AnyStep.h - Whether steps have something somewhere -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_ANYSTEP_H
#define TESSERA_LIB_RUNTIME_GPU_ANYSTEP_H

#include "tessera/Runtime/Program.h"

#include <algorithm>

namespace tessera::runtime::gpu {

/// Whether a list has an action of that type, at any depth.
template <typename Action> bool hasStep(const StepList &steps) {
  return std::any_of(steps.begin(), steps.end(), [](const Step &step) {
    if (auto *loop = std::get_if<LoopStep>(&step.action))
      return hasStep<Action>(loop->body);
    if (auto *loop = std::get_if<WhileStep>(&step.action))
      return hasStep<Action>(loop->before) || hasStep<Action>(loop->body);
    if (auto *branch = std::get_if<IfStep>(&step.action))
      return hasStep<Action>(branch->thenSteps) || hasStep<Action>(branch->elseSteps);
    return std::holds_alternative<Action>(step.action);
  });
}

/// The same in any part of a program.
template <typename Action> bool hasStep(const Program &program) {
  return std::any_of(program.parts.begin(), program.parts.end(),
                     [](const Part &part) { return hasStep<Action>(part.steps); });
}

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_ANYSTEP_H
