//===- KernelLibrary.cpp - The kernels section, opened --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelLibrary.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

namespace tessera::runtime {

KernelLibrary::~KernelLibrary() {
  if (library)
    ::dlclose(library);
  if (descriptor >= 0)
    ::close(descriptor);
}

/// An unnamed file, in memory or, if unsupported, in the temporary folder.
static int anonymousFile() {
  int descriptor = ::memfd_create("tessera-kernels", MFD_CLOEXEC);
  if (descriptor >= 0)
    return descriptor;
  char path[] = "/tmp/tessera-kernels-XXXXXX";
  descriptor = ::mkstemp(path);
  if (descriptor >= 0)
    ::unlink(path);
  return descriptor;
}

Status KernelLibrary::open(const std::vector<CpuKernels> &variants,
                           const std::vector<std::string> &names) {
  if (names.empty())
    return {};
  auto chosen = chooseKernels(variants);
  if (!chosen)
    return chosen.status();
  if (!*chosen)
    return Status::error("kernels: the artifact has none for a CPU");
  tasksOf = (*chosen)->tasks;
  return open((*chosen)->image, names);
}

Status KernelLibrary::open(const Bytes &image, const std::vector<std::string> &names) {
  descriptor = anonymousFile();
  for (size_t done = 0; descriptor >= 0 && done < image.size();) {
    ssize_t count = ::write(descriptor, image.data() + done, image.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return Status::error(std::string("kernels: ") + std::strerror(errno));
    done += static_cast<size_t>(count);
  }
  if (descriptor < 0)
    return Status::error(std::string("kernels: ") + std::strerror(errno));
  std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return Status::error(std::string("kernels: cannot be loaded: ") + ::dlerror());
  for (const std::string &name : names) {
    auto kernel = reinterpret_cast<Kernel>(::dlsym(library, name.c_str()));
    if (!kernel)
      return Status::error("kernels: there is no symbol '" + name + "'");
    kernels.push_back(kernel);
  }
  return {};
}

} // namespace tessera::runtime
