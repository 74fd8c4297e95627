//===- RingAttention.cpp - Attentions that may become rings ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Ext/IR/AttentionBand.h"
#include "tessera/Dialect/Ext/IR/AttentionRing.h"
#include "tessera/Dialect/Ext/IR/ExtDialect.h"
#include "tessera/Transforms/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace tessera::dist {
#define GEN_PASS_DEF_DISTRINGATTENTION
#include "tessera/Transforms/Passes.h.inc"
} // namespace tessera::dist

using namespace mlir;
using namespace tessera;

namespace {
struct DistRingAttention : dist::impl::DistRingAttentionBase<DistRingAttention> {
  using DistRingAttentionBase::DistRingAttentionBase;

  void runOnOperation() override {
    ext::AttentionKinds all;
    getOperation().walk([&](Operation *op) {
      if (!isa<ext::AttentionOp, ext::AttentionBackwardOp>(op))
        return;
      ext::AttentionParts parts = ext::partsOf(op);
      int64_t kind = all.numberOf(parts);
      if (!kinds.empty() && !llvm::is_contained(kinds, kind))
        return;
      if (ext::ringCandidateOf(parts))
        op->setAttr("ring", UnitAttr::get(op->getContext()));
      else if (remarks && !ext::keyBandOf(parts))
        op->emitRemark() << "no ring: the attention has one query, and a ring cuts queries along "
                            "with keys; cut keys, and each device attends to its own";
    });
  }
};
} // namespace
