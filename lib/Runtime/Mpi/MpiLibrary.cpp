//===- MpiLibrary.cpp - The MPI library of this process -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MpiLibrary.h"

#include "../Execution/SharedLibrary.h"

#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <unistd.h>
#include <vector>

namespace tessera::runtime {

namespace {
struct Kind {
  const char *shim, *name, *mark; ///< a symbol that only this library has
};
constexpr Kind kOpenMpi{"libtessera-mpi-openmpi.so", "Open MPI", "ompi_mpi_comm_world"};
constexpr Kind kMpich{"libtessera-mpi-mpich.so", "MPICH", "MPIR_Err_create_code"};
} // namespace

struct AlarmTimer::State {
  std::mutex mutex;
  std::condition_variable ended;
  bool over = false;
  std::thread thread;
};

AlarmTimer::AlarmTimer(double seconds, std::string message) : state(new State) {
  state->thread = std::thread([this, seconds, message = std::move(message)] {
    std::unique_lock lock(state->mutex);
    if (state->ended.wait_for(lock, std::chrono::duration<double>(seconds),
                              [this] { return state->over; }))
      return;
    std::fprintf(stderr, "tessera: error: %s\n", message.c_str());
    std::fflush(stderr);
    ::_exit(1);
  });
}

AlarmTimer::~AlarmTimer() {
  {
    std::lock_guard lock(state->mutex);
    state->over = true;
  }
  state->ended.notify_all();
  state->thread.join();
  delete state;
}

static bool isSet(std::initializer_list<const char *> names) {
  for (const char *name : names)
    if (std::getenv(name))
      return true;
  return false;
}

static bool launchedByOpenMpi() {
  return isSet({"OMPI_COMM_WORLD_SIZE"});
}
static bool launchedByPmi() {
  return isSet({"PMI_RANK", "PMI_FD", "PMIX_RANK"});
}

bool MpiLibrary::isLaunched() {
  return launchedByOpenMpi() || launchedByPmi();
}

/// The folders of the shims: that of the library or program with this code, or its lib folder.
static std::vector<std::string> placesOf(const char *shim) {
  std::vector<std::string> places;
  Dl_info self{};
  if (::dladdr(reinterpret_cast<void *>(&placesOf), &self) && self.dli_fname) {
    // For a program found by PATH, the loader has only the name.
    std::string file = std::strchr(self.dli_fname, '/') ? self.dli_fname : "/proc/self/exe";
    if (char resolved[PATH_MAX]; ::realpath(file.c_str(), resolved))
      file = resolved;
    std::string folder = file.substr(0, file.rfind('/') + 1);
    places = {folder + shim, folder + "../lib/" + shim};
  }
  places.emplace_back(shim);
  return places;
}

Status MpiLibrary::load() {
  std::vector<Kind> kinds = {kOpenMpi, kMpich};
  if (::dlsym(RTLD_DEFAULT, kOpenMpi.mark))
    kinds = {kOpenMpi};
  else if (::dlsym(RTLD_DEFAULT, kMpich.mark))
    kinds = {kMpich};
  else if (launchedByOpenMpi())
    kinds = {kOpenMpi};
  else if (isSet({"PMI_RANK", "PMI_FD"}))
    kinds = {kMpich};
  std::string said;
  for (const Kind &kind : kinds) {
    SharedLibrary library;
    Status opened;
    for (const std::string &place : placesOf(kind.shim)) {
      opened = library.open({place.c_str()}, kind.name);
      if (opened.ok())
        break;
    }
    if (!opened.ok()) {
      said += (said.empty() ? "" : "; ") + opened.message();
      continue;
    }
    const TesseraMpiShim *(*entry)() = nullptr;
    TESSERA_RETURN_IF_ERROR(library.find(entry, "tesseraMpiShim"));
    shim = entry();
    if (shim->version != TESSERA_MPI_SHIM_VERSION)
      return Status::error(std::string(kind.shim) + " has interface version " +
                           std::to_string(shim->version) + ", and this runtime takes " +
                           std::to_string(TESSERA_MPI_SHIM_VERSION) +
                           "; install both of one version of Tessera");
    return {};
  }
  return Status::error(
      "there is no MPI library for this process; install the one whose mpirun started it (Debian: "
      "libopenmpi3 or libmpich12) where Tessera was built with it: " +
      said);
}

Status MpiLibrary::error(int code, const std::string &what) const {
  if (code == 0)
    return {};
  char text[512] = "";
  shim->describe(code, text, sizeof(text));
  return Status::error(what + ": " + shim->library + " says: " + text);
}

Status MpiLibrary::start(double seconds) {
  int threads = 0, here = 0;
  exitSeconds = seconds;
  {
    AlarmTimer alarm(seconds, "waited " + std::to_string(static_cast<int64_t>(seconds)) +
                                  " s for all ranks to start MPI");
    TESSERA_RETURN_IF_ERROR(
        error(shim->start(&rank, &size, &threads, &here, &world), "starting MPI"));
  }
  if (threads == 0)
    return Status::error(std::string(shim->library) +
                         " was initialized for another thread alone; initialize it with "
                         "MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE");
  startedHere = here != 0;
  return {};
}

static MpiLibrary *instance = nullptr;

void MpiLibrary::atExit() {
  if (!instance->startedHere || instance->failed)
    return; // a launcher ends the others when a rank ends without MPI_Finalize
  AlarmTimer alarm(instance->exitSeconds,
                   "rank " + std::to_string(instance->rank) + " waited " +
                       std::to_string(static_cast<int64_t>(instance->exitSeconds)) +
                       " s for all ranks to end MPI");
  (void)instance->shim->finalize();
}

Expected<MpiLibrary *> MpiLibrary::get(double seconds) {
  static std::mutex mutex;
  static Status failure;
  std::lock_guard lock(mutex);
  if (!failure.ok())
    return failure;
  if (instance)
    return instance;
  auto *made = new MpiLibrary; // never destroyed: used at exit
  failure = made->load();
  if (failure.ok())
    failure = made->start(seconds);
  if (!failure.ok())
    return failure;
  instance = made;
  std::atexit(atExit);
  return instance;
}

} // namespace tessera::runtime
