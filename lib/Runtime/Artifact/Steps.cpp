//===- Steps.cpp - What steps read and write ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Steps.h"

namespace tessera::runtime {

std::vector<int64_t> writtenSlots(const Step &step) {
  std::vector<int64_t> written;
  if (auto *launch = std::get_if<LaunchStep>(&step.action))
    written.assign(launch->slots.begin() + launch->reads, launch->slots.end());
  else if (auto *gemm = std::get_if<GemmStep>(&step.action))
    written = {gemm->c};
  else if (auto *contract = std::get_if<ContractStep>(&step.action))
    written = {contract->c};
  else if (auto *copy = std::get_if<CopyStep>(&step.action))
    written = {copy->dst};
  else if (auto *collective = std::get_if<CollectiveStep>(&step.action))
    for (const Operand &operand : collective->operands)
      written.push_back(operand.dst);
  else if (auto *transfer = std::get_if<TransferStep>(&step.action)) {
    for (const Operand &operand : transfer->operands)
      if (!transfer->isSend)
        written.push_back(operand.dst);
  } else if (auto *loop = std::get_if<LoopStep>(&step.action))
    written = {loop->iv};
  return written;
}

std::vector<int64_t> readSlots(const Step &step) {
  std::vector<int64_t> read;
  if (auto *launch = std::get_if<LaunchStep>(&step.action))
    read = launch->slots; // a kernel may read what it writes
  else if (auto *gemm = std::get_if<GemmStep>(&step.action)) {
    read = {gemm->a, gemm->b};
    if (gemm->bias)
      read.push_back(*gemm->bias);
    if (gemm->accumulate)
      read.push_back(gemm->c);
  } else if (auto *contract = std::get_if<ContractStep>(&step.action)) {
    read = {contract->a, contract->b};
    if (contract->accumulate)
      read.push_back(contract->c);
  } else if (auto *copy = std::get_if<CopyStep>(&step.action))
    read = {copy->src};
  else if (auto *collective = std::get_if<CollectiveStep>(&step.action))
    for (const Operand &operand : collective->operands)
      read.push_back(operand.src);
  else if (auto *transfer = std::get_if<TransferStep>(&step.action)) {
    for (const Operand &operand : transfer->operands)
      if (transfer->isSend)
        read.push_back(operand.src);
  } else if (auto *loop = std::get_if<LoopStep>(&step.action)) {
    for (const Bound *bound : {&loop->lower, &loop->upper, &loop->step})
      if (bound->slot)
        read.push_back(*bound->slot);
  } else if (auto *loop = std::get_if<WhileStep>(&step.action))
    read = {loop->condition};
  else if (auto *branch = std::get_if<IfStep>(&step.action))
    read = {branch->condition};
  return read;
}

} // namespace tessera::runtime
