//===- Steps.h - Visit all steps of a program -------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_ARTIFACT_STEPS_H
#define TESSERA_LIB_RUNTIME_ARTIFACT_STEPS_H

#include "tessera/Runtime/Artifact/Program.h"

#include <algorithm>

namespace tessera::runtime {

/// Calls `visit(step)` for each step of a list, at any depth, in the order of the list; a loop or a
/// branch comes before what it contains.
template <typename Visit> void forEachStep(const StepList &steps, const Visit &visit) {
  for (const Step &step : steps) {
    visit(step);
    if (auto *loop = std::get_if<LoopStep>(&step.action)) {
      forEachStep(loop->body, visit);
    } else if (auto *loop = std::get_if<WhileStep>(&step.action)) {
      forEachStep(loop->before, visit);
      forEachStep(loop->body, visit);
    } else if (auto *branch = std::get_if<IfStep>(&step.action)) {
      forEachStep(branch->thenSteps, visit);
      forEachStep(branch->elseSteps, visit);
    }
  }
}

/// The slots that a step writes, without the steps in it.
std::vector<int64_t> writtenSlots(const Step &step);
/// The slots that a step reads: operands, bounds and conditions. A product that accumulates reads
/// its result, too.
std::vector<int64_t> readSlots(const Step &step);

/// Whether a list has an action of that type for which `is` holds.
template <typename Action, typename Is> bool hasStep(const StepList &steps, Is is) {
  bool has = false;
  forEachStep(steps, [&](const Step &step) {
    auto *action = std::get_if<Action>(&step.action);
    has |= action && is(*action);
  });
  return has;
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

#endif // TESSERA_LIB_RUNTIME_ARTIFACT_STEPS_H
