//===- CpuFeatures.cpp - Features of CPUs that kernels use ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Support/CpuFeatures.h"

#include <algorithm>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

using namespace tessera;

// LLVM's names, which are those of __builtin_cpu_supports too. avx512fp16 is absent because kernels
// compute in f32, avx512bf16 because it rounds subnormal numbers to zero.
#define TESSERA_X86_FEATURES(X)                                                                    \
  X("sse3")                                                                                        \
  X("ssse3")                                                                                       \
  X("sse4.1")                                                                                      \
  X("sse4.2")                                                                                      \
  X("popcnt")                                                                                      \
  X("avx")                                                                                         \
  X("avx2")                                                                                        \
  X("fma")                                                                                         \
  X("f16c")                                                                                        \
  X("bmi")                                                                                         \
  X("bmi2")                                                                                        \
  X("lzcnt")                                                                                       \
  X("avx512f")                                                                                     \
  X("avx512cd")                                                                                    \
  X("avx512bw")                                                                                    \
  X("avx512dq")                                                                                    \
  X("avx512vl")                                                                                    \
  X("avx512ifma")                                                                                  \
  X("avx512vbmi")                                                                                  \
  X("avx512vbmi2")                                                                                 \
  X("avx512vnni")                                                                                  \
  X("avx512bitalg")                                                                                \
  X("avx512vpopcntdq")

#define TESSERA_NAME(NAME) NAME,
static const char *const kX86[] = {TESSERA_X86_FEATURES(TESSERA_NAME)};

const char *tessera::hostArchitecture() {
#if defined(__x86_64__)
  return "x86-64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "unknown";
#endif
}

std::span<const char *const> tessera::kernelFeatures(const std::string &architecture) {
  if (architecture == "x86-64")
    return kX86;
  return {};
}

static std::vector<std::string> detect() {
  std::vector<std::string> found;
#if defined(__x86_64__)
#define TESSERA_DETECT(NAME)                                                                       \
  if (__builtin_cpu_supports(NAME))                                                                \
    found.push_back(NAME);
  __builtin_cpu_init();
  TESSERA_X86_FEATURES(TESSERA_DETECT)
#endif
  return found;
}

const std::vector<std::string> &tessera::hostFeatures() {
  static const std::vector<std::string> found = detect();
  return found;
}

#if defined(__x86_64__)
/// Whether this process may use the tile registers of AMX: the system saves them at a switch, and
/// grants their memory on request.
static bool hasTiles() {
  unsigned a, b, c, d;
  constexpr unsigned kSaves = 1u << 27; // xgetbv may be executed
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & kSaves))
    return false;
  unsigned low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  constexpr unsigned kTiles = 3u << 17; // their configuration and their data
  if ((low & kTiles) != kTiles)
    return false;
  constexpr long kRequestPermission = 0x1023, kTileData = 18; // ARCH_REQ_XCOMP_PERM, XTILEDATA
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
#endif

static ProductFeatures detectProducts() {
  ProductFeatures found;
#if defined(__x86_64__)
  __builtin_cpu_init();
  found.avx512Bf16 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bf16");
  unsigned a, b, c, d;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d))
    return found;
  constexpr unsigned kAmxBf16 = 1u << 22, kAmxTile = 1u << 24, kAmxFp16 = 1u << 21;
  if ((d & kAmxBf16) && (d & kAmxTile) && hasTiles()) {
    found.amxBf16 = true;
    found.amxFp16 = __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & kAmxFp16);
  }
#endif
  return found;
}

const ProductFeatures &tessera::productFeatures() {
  static const ProductFeatures found = detectProducts();
  return found;
}

std::string tessera::portableCpu() {
  std::string architecture = hostArchitecture();
  if (architecture != "x86-64")
    return architecture;
  auto has = [](const char *feature) {
    const auto &all = hostFeatures();
    return std::find(all.begin(), all.end(), feature) != all.end();
  };
  auto hasAll = [&](std::initializer_list<const char *> features) {
    return std::all_of(features.begin(), features.end(), has);
  };
  if (!hasAll({"sse3", "ssse3", "sse4.1", "sse4.2", "popcnt"}))
    return "x86-64";
  if (!hasAll({"avx", "avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt"}))
    return "x86-64-v2";
  return hasAll({"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}) ? "x86-64-v4"
                                                                             : "x86-64-v3";
}
