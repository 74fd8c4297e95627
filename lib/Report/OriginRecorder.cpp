//===- OriginRecorder.cpp - Record the origin of every axis ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Report/OriginRecorder.h"

#include "tessera/Support/Location.h"
#include "tessera/Transforms/ShardingActions.h"

#include <set>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

OriginRecorder::OriginRecorder(MLIRContext *context) : context(context) {
  context->registerActionHandler(
      [this](llvm::function_ref<void()> apply, const tracing::Action &action) {
        apply();
        if (paused || action.getTag() != ShardingAction::tag)
          return;
        const auto &sharding = static_cast<const ShardingAction &>(action);
        gains[sharding.tensor].push_back({sharding.axis, sharding.source});
        if (!sharding.name.empty())
          byName.emplace(sharding.name, sharding.tensor);
        describe[sharding.tensor] = sharding.name.empty()
                                        ? "a value at " + tessera::toString(sharding.loc)
                                        : "'" + sharding.name + "'";
        if (sharding.source >= 0)
          describe.emplace(sharding.source, sharding.sourceDescription);
      });
}

OriginRecorder::~OriginRecorder() {
  context->registerActionHandler(nullptr);
}

std::string OriginRecorder::originOf(const std::string &name) const {
  auto own = byName.find(name);
  if (own == byName.end())
    return "";
  std::string text;
  for (const Gain &gain : gains.at(own->second)) {
    // Follow the axis back to the tensor that did not get it from another.
    int64_t at = gain.source;
    std::set<int64_t> seen;
    while (at >= 0 && seen.insert(at).second) {
      auto it = gains.find(at);
      if (it == gains.end())
        break;
      auto from = llvm::find_if(it->second, [&](const Gain &g) { return g.axis == gain.axis; });
      if (from == it->second.end() || from->source < 0)
        break;
      at = from->source;
    }
    auto root = describe.find(at);
    text += (text.empty() ? "" : "; ") + gain.axis +
            (gain.source < 0 ? " annotated"
                             : " from " + (root == describe.end() ? "the program" : root->second));
  }
  return text;
}
