//===- GpuLoopOrder.cpp - Parallel loops outside, sums inside -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The outermost loops are distributed over the threads. A derivative often sums over its first
// loop, such as the tokens of a weight's gradient; only the order of a sum depends on the order of
// loops, and it is unchanged.
//
//===----------------------------------------------------------------------===//

#include "../GpuStages.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;

namespace tessera::codegen {

void putParallelLoopsFirst(func::FuncOp kernel) {
  kernel.walk([&](linalg::GenericOp op) {
    SmallVector<utils::IteratorType> before = op.getIteratorTypesArray();
    SmallVector<unsigned> order;
    for (utils::IteratorType kind : {utils::IteratorType::parallel, utils::IteratorType::reduction})
      for (auto [loop, iterator] : llvm::enumerate(before))
        if (iterator == kind)
          order.push_back(loop);
    if (order.size() != before.size() || llvm::is_sorted(order))
      return;
    Builder b(op.getContext());
    SmallVector<int64_t> place(order.size()); // position of each loop in the new nest
    SmallVector<Attribute> iterators;
    for (auto [to, from] : llvm::enumerate(order)) {
      place[from] = static_cast<int64_t>(to);
      iterators.push_back(linalg::IteratorTypeAttr::get(b.getContext(), before[from]));
    }
    SmallVector<AffineExpr> dims;
    for (int64_t to : place)
      dims.push_back(b.getAffineDimExpr(to));
    SmallVector<AffineMap> maps;
    for (AffineMap map : op.getIndexingMapsArray())
      maps.push_back(map.replaceDimsAndSymbols(dims, {}, map.getNumDims(), 0));
    op.setIndexingMapsAttr(b.getAffineMapArrayAttr(maps));
    op.setIteratorTypesAttr(b.getArrayAttr(iterators));
    op.getBody()->walk([&](linalg::IndexOp index) { index.setDim(place[index.getDim()]); });
  });
}

} // namespace tessera::codegen
