//===- Algorithm.cpp - Algorithms of collectives --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Algorithm.h"

#include "PlanBuilder.h"

namespace tessera::runtime {

using sharding::CollectiveKind;

static constexpr std::string_view kNames[] = {"direct",           "one_shot", "ring",
                                              "halving_doubling", "tree",     "hierarchical"};

std::string_view toString(Algorithm algorithm) {
  return kNames[static_cast<int>(algorithm)];
}

std::optional<Algorithm> parseAlgorithm(std::string_view text) {
  for (Algorithm algorithm : kAlgorithms)
    if (toString(algorithm) == text)
      return algorithm;
  return std::nullopt;
}

static bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter ||
         kind == CollectiveKind::reduce;
}

bool keepsOrder(Algorithm algorithm, CollectiveKind kind) {
  return !reduces(kind) || algorithm == Algorithm::direct || algorithm == Algorithm::one_shot;
}

static bool plan(PlanBuilder &builder, Algorithm algorithm) {
  switch (algorithm) {
  case Algorithm::direct:
    return planDirect(builder);
  case Algorithm::one_shot:
    return planOneShot(builder);
  case Algorithm::ring:
    return planRing(builder);
  case Algorithm::halving_doubling:
    return planHalvingDoubling(builder);
  case Algorithm::tree:
    return planTree(builder);
  case Algorithm::hierarchical:
    return planHierarchical(builder);
  }
  return false;
}

/// With one rank every algorithm is a copy.
static void planAlone(PlanBuilder &builder) {
  Block all{0, builder.request.counts[0]};
  builder.round();
  if (reduces(builder.request.kind))
    builder.combine({input(all)}, output(all), true);
  else
    builder.copy(input(all), output(all));
}

std::vector<Algorithm> algorithmsFor(const PlanRequest &request) {
  std::vector<Algorithm> result;
  for (Algorithm algorithm : kAlgorithms) {
    PlanBuilder builder(request);
    if (request.ranks == 1 || plan(builder, algorithm))
      result.push_back(algorithm);
  }
  return result;
}

Expected<MessagePlan> makePlan(const PlanRequest &request, Algorithm algorithm) {
  PlanBuilder builder(request);
  if (request.ranks == 1) {
    planAlone(builder);
    return builder.take();
  }
  if (plan(builder, algorithm))
    return builder.take();
  std::string known;
  for (Algorithm each : algorithmsFor(request))
    known += (known.empty() ? "" : ", ") + std::string(toString(each));
  return Status::error("algorithm '" + std::string(toString(algorithm)) + "' does not apply to " +
                       std::string(toString(request.kind)) + " of these ranks; " + known + " do");
}

} // namespace tessera::runtime
