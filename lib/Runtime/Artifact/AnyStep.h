//===- AnyStep.h - Whether steps have something somewhere -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_ARTIFACT_ANYSTEP_H
#define TESSERA_LIB_RUNTIME_ARTIFACT_ANYSTEP_H

#include "tessera/Runtime/Artifact/Program.h"

#include <algorithm>

namespace tessera::runtime {

/// Whether a list has an action of that type, at any depth, of which `is` holds.
template <typename Action, typename Is> bool hasStep(const StepList &steps, Is is) {
  return std::any_of(steps.begin(), steps.end(), [&](const Step &step) {
    if (auto *loop = std::get_if<LoopStep>(&step.action))
      return hasStep<Action>(loop->body, is);
    if (auto *loop = std::get_if<WhileStep>(&step.action))
      return hasStep<Action>(loop->before, is) || hasStep<Action>(loop->body, is);
    if (auto *branch = std::get_if<IfStep>(&step.action))
      return hasStep<Action>(branch->thenSteps, is) || hasStep<Action>(branch->elseSteps, is);
    auto *action = std::get_if<Action>(&step.action);
    return action && is(*action);
  });
}
template <typename Action> bool hasStep(const StepList &steps) {
  return hasStep<Action>(steps, [](const Action &) { return true; });
}

/// The same in any part of a program.
template <typename Action, typename Is> bool hasStep(const Program &program, Is is) {
  return std::any_of(program.parts.begin(), program.parts.end(),
                     [&](const Part &part) { return hasStep<Action>(part.steps, is); });
}
template <typename Action> bool hasStep(const Program &program) {
  return hasStep<Action>(program, [](const Action &) { return true; });
}

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_ARTIFACT_ANYSTEP_H
