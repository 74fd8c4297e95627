//===- Memory.cpp - The devices' arenas -----------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory.h"

#include <sys/mman.h>
#include <unistd.h>

namespace tessera::runtime {

std::byte *mapZeroed(size_t size) {
  constexpr size_t kHugePage = size_t(2) << 20;
  size_t slack = size >= 2 * kHugePage ? kHugePage : 0;
  void *mapped =
      ::mmap(nullptr, size + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    return nullptr;
  auto *data = static_cast<std::byte *>(mapped);
  if (!slack)
    return data;
  // Starts at a boundary of huge pages; the rest of the slack is returned.
  size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  size_t before = -reinterpret_cast<uintptr_t>(data) % kHugePage;
  size_t behind = (before + size + page - 1) / page * page;
  if (before)
    ::munmap(data, before);
  if (behind < size + slack)
    ::munmap(data + behind, size + slack - behind);
  data += before;
  (void)::madvise(data, size, MADV_HUGEPAGE);
  return data;
}

Memory::~Memory() {
  claims.clear();
  for (auto &part : arenas)
    for (Arena &arena : part)
      if (arena.data)
        ::munmap(arena.data, arena.size);
}

Status Memory::allocate(const Artifact &loaded, const Placement &placement,
                        std::optional<int64_t> only) {
  artifact = &loaded;
  const Program &program = loaded.program;
  double wanted = 0, machine = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                               static_cast<double>(::sysconf(_SC_PAGESIZE));
  auto isHere = [&](int64_t device) { return !only || device == *only; };
  for (const Part &part : program.parts)
    for (int64_t device : program.meshes[part.mesh].processIds)
      if (isHere(device))
        wanted += static_cast<double>(part.arenaBytes);
  auto tooMuch = [&] {
    return Status::error("the devices need " + std::to_string(static_cast<int64_t>(wanted)) +
                         " bytes together, this machine has " +
                         std::to_string(static_cast<int64_t>(machine)));
  };
  if (wanted > machine)
    return tooMuch();
  for (const Part &part : program.parts) {
    auto &list = arenas.emplace_back();
    for (int64_t device : program.meshes[part.mesh].processIds) {
      if (!isHere(device)) {
        list.emplace_back();
        continue;
      }
      auto size = static_cast<size_t>(std::max<int64_t>(part.arenaBytes, 1));
      std::byte *data = mapZeroed(size);
      if (!data)
        return tooMuch();
      std::vector<int64_t> nodes =
          only ? placement.systemNodesOfDevice(0, 1)
               : placement.systemNodesOfDevice(device, program.numDevices());
      if (!nodes.empty())
        (void)bindMemory(data, size, nodes); // else pages are where they are first touched
      list.push_back({data, size});
      claims.emplace_back(device, list.back().data, part.arenaBytes);
    }
  }
  return {};
}

std::byte *Memory::packed(int64_t part, int64_t position) const {
  const Part &of = artifact->program.parts[part];
  return arenas[part][position].data + of.arenaBytes - of.packedBytes;
}

std::byte *Memory::slot(int64_t part, int64_t position, int64_t slot) const {
  const Slot &place = artifact->program.parts[part].slots[slot];
  if (place.space == Slot::Space::constant)
    return const_cast<std::byte *>(artifact->constants.data()) + place.offset;
  return arenas[part][position].data + place.offset;
}

} // namespace tessera::runtime
