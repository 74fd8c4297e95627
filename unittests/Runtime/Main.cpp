//===- Main.cpp - Runtime tests, on a backend of choice -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// RuntimeTests [--backend=NAME] [--plugin=FILE] [--gtest_...]
//
// The tests of Collective, Transfer, Traffic, ControlFlow and Kernels are the
// suite that every backend must pass:
//
//   RuntimeTests --plugin=./mine.so --backend=mine
//     --gtest_filter='Collective.*:Transfer.*:Traffic.*:ControlFlow.*:Kernels.*'
//
//===----------------------------------------------------------------------===//

#include "Fixtures.h"

#include "Gpu/Stub/StubBackend.h"
#include "Mpi/ThreadedProcesses.h"
#include "tessera/Runtime/Session/Backend.h"

#include <cstdio>
#include <cstring>

using namespace tessera::runtime;

static std::string backendName = "threads";

Expected<std::unique_ptr<Executor>>
tessera::runtime::openUnderTest(std::shared_ptr<const Artifact> artifact,
                                const BackendOptions &options) {
  auto backend = findBackend(backendName);
  if (!backend)
    return backend.status();
  return backend->open(std::move(artifact), options, backend->userData);
}

/// `vdev` on host memory: emulates a GPU if there is none.
static Expected<std::unique_ptr<Executor>> openInProcess(std::shared_ptr<const Artifact> artifact,
                                                         const BackendOptions &options,
                                                         const void *) {
  auto made = gpu::makeStub(std::move(artifact), options, true);
  if (!made)
    return made.status();
  return std::unique_ptr<Executor>(std::move(*made));
}

int main(int argc, char **argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (const Backend &each : {Backend{"vdev-stub", "", openInProcess, nullptr},
                              Backend{"mpi-threads", "", openThreadedProcesses, nullptr}})
    if (!registerBackend(each).ok())
      return 1;
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--backend=", 10) == 0) {
      backendName = argv[i] + 10;
    } else if (std::strncmp(argv[i], "--plugin=", 9) == 0) {
      if (Status status = loadBackend(argv[i] + 9); !status.ok()) {
        std::fprintf(stderr, "error: %s\n", status.message().c_str());
        return 1;
      }
    } else {
      std::fprintf(stderr, "error: unknown option '%s'\n", argv[i]);
      return 1;
    }
  }
  return RUN_ALL_TESTS();
}
