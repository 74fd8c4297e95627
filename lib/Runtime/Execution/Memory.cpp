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

Memory::~Memory() {
  claims.clear();
  for (auto &part : arenas)
    for (Arena &arena : part)
      if (arena.data)
        ::munmap(arena.data, arena.size);
}

Status Memory::allocate(const Artifact &loaded, std::optional<int64_t> only) {
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
      void *data =
          ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (data == MAP_FAILED)
        return tooMuch();
      list.push_back({static_cast<std::byte *>(data), size});
      claims.emplace_back(device, list.back().data, part.arenaBytes);
    }
  }
  return {};
}

std::byte *Memory::slot(int64_t part, int64_t position, int64_t slot) const {
  const Slot &place = artifact->program.parts[part].slots[slot];
  if (place.space == Slot::Space::constant)
    return const_cast<std::byte *>(artifact->constants.data()) + place.offset;
  return arenas[part][position].data + place.offset;
}

} // namespace tessera::runtime
