//===- GemmTable.cpp - Which provider multiplies which matrices -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/Execution/GemmTable.h"

#include "tessera/Runtime/Artifact/Bytes.h"
#include "tessera/Support/CpuFeatures.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace tessera::runtime {

static constexpr const char *kProviders[] = {"onednn", "packed", "direct", "openblas"};

//===----------------------------------------------------------------------===//
// Classes
//===----------------------------------------------------------------------===//

static int powerOf(int64_t extent) {
  return std::bit_width(static_cast<uint64_t>(extent)) - 1;
}

std::string GemmTable::classOf(const GemmProblem &p) {
  std::string name = {p.transA ? 't' : 'n', p.transB ? 't' : 'n'};
  for (int64_t extent : {p.m, p.n, p.k})
    name += " " + std::to_string(powerOf(extent));
  return name;
}

GemmProblem GemmTable::representativeOf(const GemmProblem &p) {
  // Between the powers of two; the largest extents smaller, until a call takes a millisecond or so.
  constexpr int kOperations = 27, kElements = 24;
  int powers[] = {powerOf(p.m), powerOf(p.n), powerOf(p.k)};
  auto large = [&] {
    int sum = powers[0] + powers[1] + powers[2];
    return sum > kOperations || sum - *std::min_element(powers, powers + 3) > kElements;
  };
  while (large())
    --*std::max_element(powers, powers + 3);
  auto extentOf = [](int power) { return (int64_t(1) << power) + (int64_t(1) << power) / 2; };
  GemmProblem made;
  made.m = extentOf(powers[0]), made.n = extentOf(powers[1]), made.k = extentOf(powers[2]);
  made.transA = p.transA, made.transB = p.transB;
  made.lda = made.transA ? made.m : made.k;
  made.ldb = made.transB ? made.k : made.n;
  made.ldc = made.n;
  return made;
}

double measureGemm(const GemmProvider &provider, const GemmProblem &p) {
  using Clock = std::chrono::steady_clock;
  constexpr int kCalls = 5;
  std::vector<float> a(static_cast<size_t>(p.m * p.k), 1.0f), b(static_cast<size_t>(p.k * p.n), 1),
      c(static_cast<size_t>(p.m * p.n));
  provider.run(p, a.data(), b.data(), c.data()); // opens, generates code, touches pages
  double least = 0;
  for (int call = 0; call < kCalls; ++call) {
    auto begin = Clock::now();
    provider.run(p, a.data(), b.data(), c.data());
    double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    least = call ? std::min(least, seconds) : seconds;
  }
  return least;
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

GemmTable::GemmTable(std::string path, std::string key, Measure measure)
    : path(std::move(path)), key(std::move(key)), measure(std::move(measure)) {
  entries = read();
}

std::map<std::string, const GemmProvider *> GemmTable::read() {
  std::error_code error;
  if (path.empty() || !std::filesystem::exists(path, error))
    return {};
  std::map<std::string, const GemmProvider *> found;
  auto damaged = [&]() -> std::map<std::string, const GemmProvider *> {
    if (!remarked)
      std::fprintf(stderr, "%s: remark: this is no table of measured products; it is replaced\n",
                   path.c_str());
    remarked = true;
    return {};
  };
  auto bytes = readFile(path);
  if (!bytes)
    return damaged();
  auto json = nlohmann::json::parse(bytes->begin(), bytes->end(), nullptr, false);
  if (!json.is_object() || json.value("version", nlohmann::json()) != 1 ||
      !json.value("key", nlohmann::json()).is_string() ||
      !json.value("classes", nlohmann::json()).is_object())
    return damaged();
  if (json["key"] != key)
    return {};
  for (auto &[name, provider] : json["classes"].items()) {
    auto *known = provider.is_string() ? gemmProvider(provider.get<std::string>()) : nullptr;
    if (!known)
      return damaged();
    found[name] = known;
  }
  return found;
}

/// Keeps what other processes have measured in the meantime.
void GemmTable::write() {
  if (path.empty())
    return;
  std::map<std::string, const GemmProvider *> all = read();
  all.insert(entries.begin(), entries.end());
  nlohmann::json json = {{"version", 1}, {"key", key}, {"classes", nlohmann::json::object()}};
  for (auto &[name, provider] : all)
    json["classes"][name] = provider->name();
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  Status status = writeFile(path, json.dump(1) + "\n");
  if (!status.ok() && !remarked) {
    std::fprintf(stderr, "remark: measured products are not kept: %s\n", status.message().c_str());
    remarked = true;
  }
}

const GemmProvider *GemmTable::choose(const GemmProblem &problem) {
  std::string name = classOf(problem);
  std::lock_guard lock(mutex);
  if (auto known = entries.find(name); known != entries.end())
    return known->second;
  GemmProblem one = representativeOf(problem);
  const GemmProvider *best = nullptr;
  double least = 0;
  for (const char *each : kProviders) {
    const GemmProvider *provider = gemmProvider(each);
    if (!provider || !provider->supports(one))
      continue;
    double seconds = measure(*provider, one);
    if (!best || seconds < least) {
      best = provider;
      least = seconds;
    }
  }
  if (!best)
    best = gemmProvider("generated");
  entries[name] = best;
  write();
  return best;
}

//===----------------------------------------------------------------------===//
// The choice of this process
//===----------------------------------------------------------------------===//

namespace {

struct Choice {
  std::string text; ///< of TESSERA_GEMM; empty: the table in the code
  const GemmProvider *forced = nullptr;
  std::unique_ptr<GemmTable> table;
};

} // namespace

/// The model of the processor and the versions of the libraries.
static std::string machineKey() {
  std::string model = hostArchitecture();
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.rfind("model name", 0) == 0 && line.find(": ") != std::string::npos) {
      model = line.substr(line.find(": ") + 2);
      break;
    }
  for (const std::string &feature : hostFeatures())
    model += " " + feature;
  for (const char *name : kProviders)
    if (const GemmProvider *provider = gemmProvider(name))
      model += std::string("; ") + name + " " + provider->version();
  return model;
}

/// A file per machine: machines may share the folder.
static std::string tablePath(const std::string &key) {
  auto folder = [](const char *name) {
    const char *value = std::getenv(name);
    return std::filesystem::path(value ? value : "");
  };
  std::filesystem::path base = folder("XDG_CACHE_HOME");
  if (base.empty() && !folder("HOME").empty())
    base = folder("HOME") / ".cache";
  if (base.empty())
    return "";
  char digest[17];
  std::snprintf(digest, sizeof(digest), "%016llx",
                static_cast<unsigned long long>(fnv1a(key.data(), key.size())));
  return (base / "tessera" / ("products-" + std::string(digest) + ".json")).string();
}

/// The first of these variables that is a number above `least`, or 0.
static int64_t numberOf(std::initializer_list<const char *> names, int64_t least) {
  for (const char *name : names)
    if (const char *value = std::getenv(name); value && std::atoll(value) > least)
      return std::atoll(value);
  return 0;
}

/// Whether this process is one of several that compute together; the first one says what that
/// means.
static bool isInJob() {
  bool isOne = numberOf({"TESSERA_WORLD_SIZE", "TESSERA_SIZE", "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE",
                         "PMI_SIZE", "SLURM_STEP_NUM_TASKS"},
                        1);
  bool isFirst =
      numberOf({"TESSERA_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}, 0) ==
      0;
  if (isOne && isFirst)
    std::fprintf(stderr, "remark: TESSERA_GEMM=measured is for one process; the processes of a job "
                         "choose by shape, so that all compute the same bits\n");
  return isOne;
}

static const Choice &choice() {
  static const Choice *one = [] {
    auto *made = new Choice;
    const char *value = std::getenv("TESSERA_GEMM");
    made->text = value ? value : "";
    if (made->text == "measured") {
      if (isInJob())
        return made;
      std::string key = machineKey();
      made->table = std::make_unique<GemmTable>(tablePath(key), key, measureGemm);
    } else if (!made->text.empty()) {
      made->forced = gemmProvider(made->text);
    }
    return made;
  }();
  return *one;
}

Status checkGemmChoice() {
  const std::string &text = choice().text;
  if (text.empty() || text == "measured" || choice().forced)
    return {};
  bool isKnown =
      std::find(std::begin(kProviders), std::end(kProviders), text) != std::end(kProviders);
  if (isKnown)
    return Status::error("TESSERA_GEMM is '" + text + "', which this machine does not have");
  return Status::error("TESSERA_GEMM is '" + text +
                       "'; expected onednn, openblas, packed, direct, generated or measured");
}

bool choosesPanels() {
  return !choice().table && (!choice().forced || choice().forced == gemmProvider("packed"));
}

std::string describeGemmChoice() {
  std::string text;
  for (const char *name : {"onednn", "packed", "direct", "openblas", "generated"})
    if (const GemmProvider *provider = gemmProvider(name))
      if (!choice().forced || choice().forced == provider)
        text += (text.empty() ? "" : ", ") + std::string(name) +
                (provider->version().empty() ? "" : " " + provider->version());
  if (choice().forced)
    return text + " (TESSERA_GEMM)";
  return text + (choice().table ? ", as measured on this machine" : ", by shape");
}

const GemmProvider *chooseGemmProvider(const GemmProblem &p) {
  const Choice &mine = choice();
  if (mine.forced && mine.forced->supports(p))
    return mine.forced;
  if (mine.table && p.dtype == DType::f32 && p.resultDType == DType::f32)
    return mine.table->choose(p);
  return shippedGemmProvider(p);
}

} // namespace tessera::runtime
