//===- StubDriver.cpp - Emulate a GPU in host memory ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StubStreams.h"

#include "../../Execution/MoveJob.h"
#include "tessera/Runtime/Execution/Contract.h"
#include "tessera/Runtime/Execution/Gemm.h"

#include <cstring>
#include <unistd.h>

namespace tessera::runtime::gpu {

StubDriver::StubDriver(uint64_t seed) : random(seed), seed(seed) {}
StubDriver::~StubDriver() = default;

Status StubDriver::checkCapacity(int64_t bytes) const {
  double machine =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  double wanted = static_cast<double>(bytes);
  for (const Bytes &each : memory)
    wanted += static_cast<double>(each.size());
  if (wanted > machine)
    return Status::error("the devices need " + std::to_string(static_cast<int64_t>(wanted)) +
                         " bytes together, this machine has " +
                         std::to_string(static_cast<int64_t>(machine)));
  return {};
}

Expected<std::byte *> StubDriver::allocate(int64_t device, int64_t bytes) {
  TESSERA_RETURN_IF_ERROR(checkCapacity(bytes));
  ++counted.allocations;
  claims.emplace_back(device, nullptr, bytes);
  return memory.emplace_back(static_cast<size_t>(std::max<int64_t>(bytes, 1))).data();
}

Expected<std::byte *> StubDriver::allocateKept(int64_t, int64_t bytes) {
  TESSERA_RETURN_IF_ERROR(checkCapacity(bytes));
  ++counted.allocations;
  Bytes made(static_cast<size_t>(std::max<int64_t>(bytes, 1)), std::byte(0xcd));
  std::byte *data = made.data();
  std::lock_guard lock(keptMutex);
  keptMemory[data] = std::move(made);
  return data;
}

void StubDriver::freeKept(std::byte *data) {
  std::lock_guard lock(keptMutex);
  keptMemory.erase(data);
}

Expected<Stream> StubDriver::createStream(int64_t device, std::string name) {
  ++counted.streams;
  streams.push_back(std::make_unique<StreamObject>());
  streams.back()->chain = chains++;
  streams.back()->device = device;
  streams.back()->name = std::move(name);
  return streams.back().get();
}

Expected<Event> StubDriver::createEvent(int64_t) {
  ++counted.events;
  events.push_back(std::make_unique<EventObject>());
  return events.back().get();
}

Status StubDriver::load(int64_t, const Artifact &artifact) {
  if (kernels)
    return {}; // all devices share one host
  kernels = std::make_unique<StubKernels>();
  return kernels->open(artifact, seed, tf32);
}

Status StubDriver::copy(Issue issue, std::byte *to, const std::byte *from, int64_t bytes) {
  issue.touches = {{from, bytes, false}, {to, bytes, true}};
  return enqueue(std::move(issue), [=] {
    std::memmove(to, from, static_cast<size_t>(bytes));
    return Status();
  });
}

Status StubDriver::setIndex(Issue issue, std::byte *to, int64_t value) {
  issue.touches = {{to, 8, true}};
  return enqueue(std::move(issue), [=] {
    std::memcpy(to, &value, sizeof(value));
    return Status();
  });
}

Status StubDriver::move(Issue issue, MoveJob job) {
  issue.touches = touchesOf(job);
  return enqueue(std::move(issue), [job = std::move(job)] {
    runMoveJob(job);
    return Status();
  });
}

Status StubDriver::launch(Issue issue, const LaunchStep &step, std::vector<void *> slots,
                          std::byte *workspace) {
  for (StubKernels::Operation &each : kernels->operations(step, slots, workspace)) {
    Issue one = issue;
    if (!each.touches.empty())
      one.touches = std::move(each.touches);
    TESSERA_RETURN_IF_ERROR(enqueue(std::move(one), std::move(each.run)));
  }
  return {};
}

Status StubDriver::gemm(Issue issue, const GemmStep &step, const void *a, const void *b, void *c,
                        const void *bias, std::byte *) {
  const bool isPacked = std::any_of(packing.begin(), packing.end(), [&](const PackPlan &plan) {
    return plan.ofProduct.contains(&step);
  });
  return enqueue(std::move(issue), [=, &step] {
    GemmCut cut = cutGemm(step);
    for (int64_t piece = 0; piece < cut.size(); ++piece)
      multiply(step, a, b, c, bias, cut.piece(step, piece),
               isPacked ? RightOperand::panels : RightOperand::plain);
    return Status();
  });
}

Status StubDriver::contract(Issue issue, const ContractStep &step, const void *a, const void *b,
                            void *c) {
  return enqueue(std::move(issue), [=, &step] {
    Contraction contraction(step);
    contraction.split(1);
    contraction.run(0, a, b, static_cast<float *>(c));
    return Status();
  });
}

Status StubDriver::rendezvous(Issue issue, StubMeeting meeting) {
  return enqueue(std::move(issue), nullptr, std::move(meeting));
}

Expected<bool> StubDriver::synchronize(Stream stream, bool forStep) {
  ++(forStep ? counted.synchronisations : counted.reads);
  TESSERA_RETURN_IF_ERROR(progress());
  for (const StubNodePtr &node : stream->frontier)
    if (!node->done)
      return false;
  return true;
}

Status StubDriver::write(int64_t, std::byte *to, const std::byte *from, int64_t bytes) {
  counted.hostToDevice += bytes;
  std::memcpy(to, from, static_cast<size_t>(bytes));
  return {};
}
Status StubDriver::upload(Issue issue, std::byte *to, const std::byte *from, int64_t bytes) {
  counted.hostToDevice += bytes;
  issue.touches = {{to, bytes, true}};
  return enqueue(std::move(issue), [to, staged = Bytes(from, from + bytes)] {
    std::copy(staged.begin(), staged.end(), to);
    return Status();
  });
}
Status StubDriver::read(int64_t, std::byte *to, const std::byte *from, int64_t bytes) {
  counted.deviceToHost += bytes;
  std::memcpy(to, from, static_cast<size_t>(bytes));
  return {};
}

const Step *StubDriver::stuckAt(int64_t device) const {
  for (const StubNodePtr &node : arrived)
    if (node->work->device == device)
      return node->work->step;
  return nullptr;
}

} // namespace tessera::runtime::gpu
