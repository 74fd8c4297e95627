//===- OpenResults.cpp - Results without a placement ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Planning/OpenResults.h"

#include "tessera/Dialect/Dist/IR/SignatureAttrs.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

std::optional<int64_t> dist::dimToScatter(const TensorSharding &own, ArrayRef<int64_t> shape,
                                          int64_t devices) {
  for (auto [d, axes] : llvm::enumerate(own.dims))
    if (shape[d] > 0 && shape[d] % (sizeOf(axes) * devices) == 0)
      return d;
  return std::nullopt;
}

TensorSharding dist::scattered(const TensorSharding &own, ArrayRef<int64_t> shape,
                               const AxisList &open) {
  TensorSharding result = own.withoutPartial();
  for (const PartialAxis &partial : own.partial) {
    bool mayCut =
        llvm::any_of(open, [&](const AxisRef &other) { return other.contains(partial.axis); });
    std::optional<int64_t> dim =
        mayCut ? dimToScatter(result, shape, partial.axis.size) : std::nullopt;
    if (!dim)
      continue;
    result.dims[*dim].push_back(partial.axis);
    result.dims[*dim] = mergeAxes(std::move(result.dims[*dim]));
  }
  return canonical(result);
}

void dist::placeOpenResults(func::FuncOp function, const MeshTable &meshes) {
  SignatureAttrs signature(function);
  for (BlockArgument argument : function.getArguments())
    if (auto own = function.getArgAttrOfType<ShardingAttr>(argument.getArgNumber(),
                                                           DistDialect::kSharding))
      if (TensorSharding state = resolveVerified(own, meshes, argument.getType());
          !state.open.empty())
        signature.ofArgument(argument.getArgNumber())
            .set(DistDialect::kSharding, ShardingAttr::get(own.getMesh(), meshes.get(own.getMesh()),
                                                           state.closed(), function.getContext()));
  function.walk([&](func::ReturnOp ret) {
    for (auto [i, value] : llvm::enumerate(ret.getOperands())) {
      auto own = function.getResultAttrOfType<ShardingAttr>(i, DistDialect::kSharding);
      auto type = dyn_cast<RankedTensorType>(value.getType());
      if (!own || !type)
        continue;
      TensorSharding result = resolveVerified(own, meshes, type);
      if (result.open.empty())
        continue;
      TensorSharding placed = result.closed();
      bool feeds = !!function.getResultAttrOfType<IntegerAttr>(i, DistDialect::kFeeds);
      if (ShardingAttr attr = getSharding(value);
          !feeds && attr && attr.getMesh() == own.getMesh()) {
        TensorSharding returned = resolveVerified(attr, meshes, type);
        if (returned.windows.empty())
          placed = scattered(returned, type.getShape(), result.open);
      }
      signature.ofResult(i).set(DistDialect::kSharding,
                                ShardingAttr::get(own.getMesh(), meshes.get(own.getMesh()), placed,
                                                  function.getContext()));
    }
  });
  signature.write();
}
