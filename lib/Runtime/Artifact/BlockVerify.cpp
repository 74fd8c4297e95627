//===- BlockVerify.cpp - Checks of launches by blocks ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Verifier.h"

namespace tessera::runtime {

static std::string text(int64_t value) {
  return std::to_string(value);
}

static bool overlap(const Slot &x, const Slot &y) {
  return x.space == y.space && x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
}

Status StepVerifier::checkBlocks(const LaunchStep &launch) {
  if (launch.blocks < 1)
    return Status::error("blocks is " + text(launch.blocks) + "; it must be positive");
  if (launch.blocks == 1 && launch.cut.empty())
    return {};
  if (launch.cut.size() != launch.slots.size())
    return Status::error("cut has " + text(static_cast<int64_t>(launch.cut.size())) +
                         " entries for " + text(static_cast<int64_t>(launch.slots.size())) +
                         " args");
  if (base.program.kernelBytes.empty())
    return Status::error("a launch by blocks needs 'kernel_bytes'");
  const std::vector<int64_t> &bytes = base.program.kernelBytes[launch.kernel];
  auto slotOf = [&](size_t i) -> const Slot & { return part->slots[launch.slots[i]]; };
  for (size_t i = 0; i < launch.slots.size(); ++i) {
    std::string where = "args[" + text(static_cast<int64_t>(i)) + "]";
    // Kernels assume that their arguments are aligned.
    constexpr int64_t kAlignment = 64;
    if (launch.cut[i] && bytes[i] % kAlignment != 0)
      return Status::error("blocks of " + text(bytes[i]) + " bytes; expected a multiple of " +
                           text(kAlignment))
          .in(where);
    if (launch.cut[i] && bytes[i] > slotOf(i).bytes / launch.blocks)
      return Status::error(text(launch.blocks) + " blocks of " + text(bytes[i]) +
                           " bytes reach beyond slot " + text(launch.slots[i]))
          .in(where);
    if (static_cast<int64_t>(i) < launch.reads || launch.blocks == 1)
      continue;
    if (!launch.cut[i])
      return Status::error("every block writes all of it; an argument that is written must be cut")
          .in(where);
    for (size_t j = 0; j < launch.slots.size(); ++j) {
      bool isSame = launch.cut[j] && slotOf(i).offset == slotOf(j).offset && bytes[i] == bytes[j];
      if (i != j && overlap(slotOf(i), slotOf(j)) &&
          (!isSame || static_cast<int64_t>(j) >= launch.reads))
        return Status::error("a block writes what another one accesses as args[" +
                             text(static_cast<int64_t>(j)) + "]")
            .in(where);
    }
  }
  return {};
}

Status StepVerifier::checkJoin(const LaunchStep &launch) {
  std::vector<int64_t> factors;
  int64_t result = 0;
  if (auto *gemm = before ? std::get_if<GemmStep>(&before->action) : nullptr) {
    factors = {gemm->a, gemm->b};
    if (gemm->bias)
      factors.push_back(*gemm->bias);
    result = gemm->c;
  } else if (auto *contract = before ? std::get_if<ContractStep>(&before->action) : nullptr) {
    factors = {contract->a, contract->b};
    result = contract->c;
  } else {
    return Status::error("a launch that joins must follow a gemm or a contract");
  }
  const Slot &c = part->slots[result];
  for (size_t i = 0; i < launch.slots.size(); ++i) {
    std::string where = "args[" + text(static_cast<int64_t>(i)) + "]";
    const Slot &slot = part->slots[launch.slots[i]];
    bool isPart = launch.isCut(i) && slot.offset == c.offset && slot.bytes == c.bytes &&
                  launch.blocks * base.program.kernelBytes[launch.kernel][i] == c.bytes;
    if (overlap(slot, c) && !isPart)
      return Status::error("slot " + text(launch.slots[i]) +
                           " is not cut like the result of the product that the launch joins")
          .in(where);
    for (int64_t factor : factors)
      if (static_cast<int64_t>(i) >= launch.reads && overlap(slot, part->slots[factor]))
        return Status::error("slot " + text(launch.slots[i]) + " overlaps slot " + text(factor) +
                             ", which the product that the launch joins reads")
            .in(where);
  }
  return {};
}

} // namespace tessera::runtime
