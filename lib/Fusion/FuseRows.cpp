//===- FuseRows.cpp - The rows that fused ops have in common --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Fusion/FuseRows.h"

#include "tessera/Dialect/Dist/Rules/Selection.h"

using namespace mlir;
using namespace tessera::dist;

/// Fewer iterations than this are not worth a launch of their own, whatever their order.
static constexpr int64_t kTinyWork = 2048;

RowSpace RowSpace::of(Operation *op) {
  RowSpace space;
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!linalgOp || linalgOp.hasDynamicShape() || (generic && isScatter(generic))) {
    for (Value result : op->getResults())
      if (auto type = dyn_cast<RankedTensorType>(result.getType()))
        space.values[result] = Labels(type.getRank(), -1);
    return space;
  }
  SmallVector<int64_t> ranges = linalgOp.getStaticLoopRanges();
  space.work = ShapedType::getNumElements(ranges);
  space.reduces = linalgOp.getNumReductionLoops() > 0;
  // Row of a loop, if every output has the loop as a dimension.
  SmallVector<int> rowOf(ranges.size(), -1);
  for (auto [loop, kind] : llvm::enumerate(linalgOp.getIteratorTypesArray())) {
    bool everywhere = kind == utils::IteratorType::parallel;
    for (OpOperand &init : linalgOp.getDpsInitsMutable()) {
      AffineMap map = linalgOp.getMatchingIndexingMap(&init);
      everywhere &= map.isProjectedPermutation() &&
                    llvm::is_contained(map.getResults(), getAffineDimExpr(loop, map.getContext()));
    }
    if (!everywhere)
      continue;
    rowOf[loop] = space.extents.size();
    space.extents.push_back(ranges[loop]);
  }
  for (OpOperand &init : linalgOp.getDpsInitsMutable()) {
    AffineMap map = linalgOp.getMatchingIndexingMap(&init);
    Labels labels;
    int lead = -1;
    for (AffineExpr expr : map.getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      labels.push_back(dim ? rowOf[dim.getPosition()] : -1);
      if (lead < 0 && dim && ranges[dim.getPosition()] > 1)
        lead = labels.back();
    }
    if (lead >= 0)
      space.leads.push_back(lead);
    space.values[linalgOp.getTiedOpResult(&init)] = labels;
  }
  return space;
}

int64_t RowSpace::count() const {
  return ShapedType::getNumElements(extents);
}

bool RowSpace::join(linalg::LinalgOp consumer, const RowSpace &producer, bool privateProducer,
                    RowSpace &joined) const {
  // The consumer's own row for each loop: the `values` of a single op have its outputs' rows, and
  // rows are numbered by ascending loop.
  SmallVector<int> loopRow(consumer.getNumLoops(), -1);
  {
    OpOperand &init = *consumer.getDpsInitsMutable().begin();
    AffineMap map = consumer.getMatchingIndexingMap(&init);
    const Labels &labels = values.find(consumer.getTiedOpResult(&init))->second;
    for (auto [position, expr] : llvm::enumerate(map.getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr))
        loopRow[dim.getPosition()] = labels[position];
  }
  // The producer row that each row of the consumer meets in the passed values, and the inverse.
  // Rows that meet several others are broken.
  SmallVector<int> partner(extents.size(), -1), of(producer.extents.size(), -1);
  SmallVector<bool> broken(extents.size(), false), brokenOf(producer.extents.size(), false);
  for (OpOperand &operand : consumer->getOpOperands()) {
    auto it = producer.values.find(operand.get());
    if (it == producer.values.end())
      continue;
    AffineMap map = consumer.getMatchingIndexingMap(&operand);
    SmallVector<bool> met(producer.extents.size(), false);
    for (auto [position, row] : llvm::enumerate(it->second)) {
      if (row < 0)
        continue;
      auto dim = dyn_cast<AffineDimExpr>(map.getResult(position));
      if (!dim) // a window reads the neighboring rows
        return false;
      int mine = loopRow[dim.getPosition()];
      if (mine < 0) {
        brokenOf[row] = true;
        continue;
      }
      met[row] = true;
      if ((partner[mine] >= 0 && partner[mine] != row) || (of[row] >= 0 && of[row] != mine))
        broken[mine] = brokenOf[row] = true;
      partner[mine] = row;
      of[row] = mine;
    }
    for (auto [row, seen] : llvm::enumerate(met))
      if (!seen)
        brokenOf[row] = true;
  }
  // Renumber the common rows.
  SmallVector<int> consumerToJoined(extents.size(), -1),
      producerToJoined(producer.extents.size(), -1);
  joined = RowSpace();
  for (size_t mine = 0; mine < extents.size(); ++mine) {
    if (partner[mine] < 0 || broken[mine] || brokenOf[partner[mine]])
      continue;
    consumerToJoined[mine] = producerToJoined[partner[mine]] = joined.extents.size();
    joined.extents.push_back(extents[mine]);
  }
  joined.work = work + producer.work;
  joined.reduces = reduces || producer.reduces;
  bool keepsLeads = true, keepsProducersLeads = true;
  auto take = [](const RowSpace &from, ArrayRef<int> to, RowSpace &into, bool &keeps) {
    for (auto &[value, labels] : from.values) {
      Labels renamed;
      for (int row : labels)
        renamed.push_back(row < 0 ? -1 : to[row]);
      into.values[value] = renamed;
    }
    for (int lead : from.leads) {
      keeps &= to[lead] >= 0;
      if (to[lead] >= 0 && !llvm::is_contained(into.leads, to[lead]))
        into.leads.push_back(to[lead]);
    }
  };
  take(*this, consumerToJoined, joined, keepsLeads);
  take(producer, producerToJoined, joined, keepsProducersLeads);
  if (joined.work <= kTinyWork)
    return true;
  // Elementwise ops with this reduction as their only reader become part of its body, in any order.
  if (keepsLeads && !keepsProducersLeads)
    return privateProducer && !producer.reduces;
  return keepsLeads && keepsProducersLeads;
}
