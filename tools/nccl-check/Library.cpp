//===- Library.cpp - NCCL and the communicators in use --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Library.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <unistd.h>

namespace tessera::nccl_check {

void *realFunction(const char *name) {
  static void *library = [] {
    const char *path = std::getenv("TESSERA_NCCL_LIBRARY");
    void *opened = ::dlopen(path ? path : "libnccl.so.2", RTLD_NOW | RTLD_GLOBAL);
    if (!opened)
      std::fprintf(stderr, "nccl-check: NCCL cannot be opened: %s\n", ::dlerror());
    return opened;
  }();
  void *found = library ? ::dlsym(library, name) : nullptr;
  if (library && !found)
    std::fprintf(stderr, "nccl-check: the library has no %s\n", name);
  return found;
}

Result wrong(const char *function, const std::string &why, Result result) {
  std::fprintf(stderr, "nccl-check: %s: %s\n", function, why.c_str());
  return result;
}

int &groupDepth() {
  thread_local int depth = 0;
  return depth;
}

std::string Communicator::end() {
  if (rank < 0 || name.empty() || isFinalized)
    return ""; // never used, or other ranks are unknown
  if (!messages)
    messages = std::make_unique<Messages>(Communicators::all().folder(), name, rank, ranks);
  std::string left = messages->close();
  return left.empty() ? "" : left + " (rank " + std::to_string(rank) + ")";
}

Communicators &Communicators::all() {
  static auto *made = new Communicators; // never destroyed: threads may still call at exit
  return *made;
}

void Communicators::expect(Comm *address, Comm parent, Communicator communicator) {
  std::erase_if(pending, [&](const Pending &each) { return each.address == address; });
  if (*address) {
    destroyed.erase(*address);
    communicators[*address] = std::move(communicator);
    return;
  }
  const void *group = groupDepth() > 0 ? &groupDepth() : nullptr;
  if (parent || group)
    pending.push_back({parent, address, group, std::move(communicator)});
}

void Communicators::settleIf(bool (*isDone)(const Pending &, const void *), const void *what) {
  for (Pending &each : pending)
    if (isDone(each, what))
      if (Comm made = __atomic_load_n(each.address, __ATOMIC_ACQUIRE)) { // null: without color
        destroyed.erase(made);
        communicators[made] = std::move(each.communicator);
      }
  std::erase_if(pending, [&](const Pending &each) { return isDone(each, what); });
}

void Communicators::settle(Comm parent) {
  settleIf([](const Pending &each, const void *of) { return each.parent == of; }, parent);
}

void Communicators::settleGroup(Result result) {
  if (result != kInProgress) // else it is reported through the parents
    settleIf([](const Pending &each, const void *of) { return each.group == of; }, &groupDepth());
}

std::string Communicators::find(Comm comm, Communicator *&found) {
  if (!comm)
    return "the communicator is null";
  auto it = communicators.find(comm);
  // A freed address may be reused by a communicator that is being created.
  if (it == communicators.end() && destroyed.count(comm) && pending.empty())
    return "the communicator was destroyed";
  found = it != communicators.end() ? &it->second : &communicators[comm];
  return "";
}

void Communicators::forget(Comm comm) {
  std::erase_if(pending, [&](const Pending &each) { return each.parent == comm; });
  communicators.erase(comm);
  destroyed.insert(comm);
}

const std::string &Communicators::folder() {
  if (!notes.empty())
    return notes;
  process = ::getpid();
  if (const char *given = std::getenv("TESSERA_NCCL_CHECK_DIR"))
    return notes = given;
  std::error_code error;
  std::string made = std::filesystem::temp_directory_path(error) / "tessera-nccl-check-XXXXXX";
  ownsNotes = ::mkdtemp(made.data()) != nullptr;
  return notes = made;
}

void Communicators::end() {
  ended = true;
  if (process != 0 && process != ::getpid())
    return; // forked: the communicators are the parent's
  for (auto &[comm, communicator] : communicators)
    if (std::string left = communicator.end(); !left.empty())
      (void)wrong("at the end", left);
  std::error_code error; // a remaining folder is harmless
  if (ownsNotes)
    std::filesystem::remove_all(notes, error);
}

/// Processes may end with live communicators.
__attribute__((destructor)) static void endAll() {
  std::lock_guard lock(Communicators::all().mutex);
  Communicators::all().end();
}

} // namespace tessera::nccl_check
