//===- Version.h - The text of --version ------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_VERSION_H
#define TESSERA_TOOLS_VERSION_H

#include "tessera/Runtime/Execution/GemmTable.h"
#include "tessera/Support/CpuFeatures.h"

namespace tessera {

/// The version, what kernels use on this machine, and which code has never run on hardware.
inline std::string versionText() {
  std::string text = "tessera " TESSERA_VERSION "\nthis machine: " + portableCpu() + ", with";
  for (const std::string &feature : hostFeatures())
    text += " " + feature;
  if (hostFeatures().empty())
    text += " the baseline of " + std::string(hostArchitecture());
  text += "\nproducts: " + runtime::describeGemmChoice();
  const ProductFeatures &products = productFeatures();
  text += "\nproducts of 16-bit floats:";
  text += products.amxBf16 ? " amx_bf16" : products.avx512Bf16 ? " avx512_bf16" : " in f32";
  text += products.amxFp16 ? ", amx_fp16" : "";
  return text + "\nuntested on hardware: kernels for aarch64 (tested under emulation), products by "
                "amx_bf16 and amx_fp16 (instructions inspected, layout emulated)\n"
                "unused: AVX512-FP16, SVE; AVX512-BF16 and AMX but in products";
}

} // namespace tessera

#endif // TESSERA_TOOLS_VERSION_H
