//===- Describe.h - Describe a plan by its parallelisms ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_SEARCH_DESCRIBE_H
#define TESSERA_LIB_TRANSFORMS_SEARCH_DESCRIBE_H

#include "tessera/Planning/StrategyGraph.h"

namespace tessera::dist {

// clang-format off
/// The parallelisms of a plan with the mesh axes of each: "data over dp, ep", "tensor over tp". An
/// axis has each role that it has in at least a tenth of the contractions' work:
///
///   data      it cuts the leading dimension of activations; weights are whole
///   sequence  it cuts another dimension of activations; weights are whole
///   spatial   it cuts the height, width or depth of what a convolution or pooling makes
///   tensor    it cuts a weight where it is used
///   expert    it cuts a dimension that weight, activation and result have in common
///   ZeRO      it cuts an argument that is gathered for its users
// clang-format on
std::vector<std::string> parallelismsOf(const StrategyGraph &strategies,
                                        const PropagationGraph &graph,
                                        const std::vector<int64_t> &choice);

/// For each argument with a chosen sharding: the sharding, its saving, and the runner-up with its
/// cost if nothing else changes. By tensor.
std::map<int64_t, std::string> reasonsOf(const StrategyGraph &strategies,
                                         const PropagationGraph &graph,
                                         const std::vector<int64_t> &choice);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_SEARCH_DESCRIBE_H
