//===- NcclApi.cpp - NCCL's functions, opened at run time -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NcclApi.h"

#include <climits>

namespace tessera::runtime::gpu {

Status NcclApi::openLibrary() {
  return library.open(
      {"libnccl.so.2", "libnccl.so"},
      "collectives between GPUs need NCCL (>= 2.18), the package libnccl2 or nvidia-nccl",
      [this] { return begin(); });
}

Status NcclApi::begin() {
  constexpr int kOldest = 21800; // communicators are split
  library.preferLoaded("tessera_nccl_check");
#define TESSERA_FIND(name, symbol, arguments)                                                      \
  TESSERA_RETURN_IF_ERROR(library.find(name##Fn, symbol));
  TESSERA_NCCL_FUNCTIONS(TESSERA_FIND)
#undef TESSERA_FIND
  library.findOptional(errorText, "ncclGetErrorString");
  library.findOptional(finalizeFn, "ncclCommFinalize");
  library.findOptional(destroyFn, "ncclCommDestroy");
  library.findOptional(registerFn, "ncclCommRegister");
  library.findOptional(memAllocFn, "ncclMemAlloc");
  library.findOptional(memFreeFn, "ncclMemFree");
  library.findOptional(windowFn, "ncclCommWindowRegister");
  int result = getVersionFn(&found);
  if (result != kNcclSuccess)
    return Status::error("cannot get the version of NCCL: " + describe(result));
  return found >= kOldest ? Status() : Status::error("it is NCCL " + versionText());
}

std::optional<int> ncclTypeOf(DType dtype, bool isUnsigned) {
  switch (dtype) {
  case DType::f64:
    return kNcclFloat64;
  case DType::f32:
    return kNcclFloat32;
  case DType::f16:
    return kNcclFloat16;
  case DType::bf16:
    return kNcclBfloat16;
  case DType::i64:
  case DType::index:
    return isUnsigned ? kNcclUint64 : kNcclInt64;
  case DType::i32:
    return isUnsigned ? kNcclUint32 : kNcclInt32;
  case DType::i8:
    return isUnsigned ? kNcclUint8 : kNcclInt8;
  case DType::i1:
    return kNcclUint8;
  default:
    return std::nullopt;
  }
}

std::string NcclApi::versionText() const {
  return std::to_string(found / 10000) + "." + std::to_string(found / 100 % 100) + "." +
         std::to_string(found % 100);
}

std::string NcclApi::describe(int result) const {
  return std::string(errorText ? errorText(result) : "failed") + " (NCCL " + versionText() +
         ", error " + std::to_string(result) + ")";
}

NcclConfig NcclApi::config() {
  constexpr int kUndefined = INT_MIN;
  return {sizeof(NcclConfig), 0xcafebeef, 21800,   0,         kUndefined,
          kUndefined,         kUndefined, nullptr, kUndefined};
}

} // namespace tessera::runtime::gpu
