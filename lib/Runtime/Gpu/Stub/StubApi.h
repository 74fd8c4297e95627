//===- StubApi.h - The emulator's side of StubKernel.h ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_STUB_STUBAPI_H
#define TESSERA_LIB_RUNTIME_GPU_STUB_STUBAPI_H

#include "tessera/Runtime/Gpu/StubKernel.h"

namespace tessera::runtime {

/// The functions that kernels call, defined by the emulator; valid for the lifetime of the process.
const tessera_stub_api &stubApi();

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_GPU_STUB_STUBAPI_H
