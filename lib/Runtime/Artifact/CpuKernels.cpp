//===- CpuKernels.cpp - Variants of kernels, written, read, chosen --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/Artifact/CpuKernels.h"

#include "JsonNode.h"
#include "tessera/Support/CpuFeatures.h"

#include <algorithm>

namespace tessera::runtime {

static std::string joined(const std::vector<std::string> &words) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : ", ") + word;
  return text;
}

/// What `variant` requires and this machine lacks.
static std::vector<std::string> missing(const CpuKernels &variant) {
  if (variant.architecture != hostArchitecture())
    return {"architecture " + variant.architecture};
  std::vector<std::string> result;
  const std::vector<std::string> &here = hostFeatures();
  for (const std::string &feature : variant.features)
    if (std::find(here.begin(), here.end(), feature) == here.end())
      result.push_back(feature);
  return result;
}

Expected<const CpuKernels *> chooseKernels(const std::vector<CpuKernels> &variants) {
  const CpuKernels *best = nullptr;
  std::vector<std::string> reasons;
  for (const CpuKernels &variant : variants) {
    if (std::vector<std::string> lacks = missing(variant); !lacks.empty())
      reasons.push_back("those for '" + variant.cpu + "' require " + joined(lacks));
    else if (!best || variant.features.size() > best->features.size())
      best = &variant;
  }
  if (best || variants.empty())
    return best;
  return Status::error("kernels: this machine (" + std::string(hostArchitecture()) +
                       ") cannot run them: " + joined(reasons) +
                       "; compile the program with --cpu=" + portableCpu() +
                       ", or for several CPUs with --cpu=A,B");
}

Status keepKernels(std::vector<CpuKernels> &variants, const std::string &cpu) {
  std::vector<std::string> names;
  for (const CpuKernels &variant : variants)
    names.push_back(variant.cpu);
  if (std::erase_if(variants, [&](auto &v) { return v.cpu != cpu; }); variants.empty())
    return Status::error("--cpu '" + cpu + "': the artifact has " +
                         (names.empty() ? "no kernels for a CPU" : "kernels for " + joined(names)));
  return {};
}

std::string toJson(const std::vector<CpuKernels> &variants) {
  auto json = nlohmann::ordered_json::array();
  for (const CpuKernels &variant : variants)
    json.push_back({{"cpu", variant.cpu},
                    {"architecture", variant.architecture},
                    {"features", variant.features},
                    {"tasks", variant.tasks}});
  return json.dump();
}

Expected<std::vector<CpuKernels>> parseCpuKernels(std::string_view text) {
  try {
    auto document = nlohmann::json::parse(text);
    std::vector<CpuKernels> variants;
    for (const Node &node : Node(document, "kernels").list())
      variants.push_back({node["cpu"].text(),
                          node["architecture"].text(),
                          node["features"].texts(),
                          node["tasks"].integers(),
                          {}});
    return variants;
  } catch (const ParseError &error) {
    return Status::error(error.message);
  } catch (const nlohmann::json::exception &error) {
    return Status::error(std::string("kernels: not valid JSON: ") + error.what());
  }
}

} // namespace tessera::runtime
