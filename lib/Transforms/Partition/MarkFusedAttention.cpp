//===- MarkFusedAttention.cpp - Attention that stays one op on GPUs -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Ext/IR/ExtDialect.h"
#include "tessera/Dialect/Ext/IR/FusedAttention.h"
#include "tessera/Transforms/Passes.h"

namespace tessera::dist {
#define GEN_PASS_DEF_DISTMARKFUSEDATTENTION
#include "tessera/Transforms/Passes.h.inc"
} // namespace tessera::dist

using namespace tessera;

namespace {
struct MarkFusedAttention : dist::impl::DistMarkFusedAttentionBase<MarkFusedAttention> {
  void runOnOperation() override { ext::markFusedAttention(getOperation()); }
};
} // namespace
