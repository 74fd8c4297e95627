//===- ArtifactCache.cpp - Artifacts of programs compiled before ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ArtifactCache.h"

#include "tessera/Codegen/CPU/KernelCompiler.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"

#include <link.h>

using namespace tessera;

static constexpr uint64_t kLimitBytes = uint64_t(256) << 20;

namespace {
/// The objects loaded in this process that the compiler consists of, by their build ids.
struct Build {
  std::string ids;
  bool isComplete = true; ///< every object has an id
};
} // namespace

/// The note NT_GNU_BUILD_ID of a loaded object in hexadecimal, or empty.
static std::string buildId(const dl_phdr_info &object) {
  constexpr size_t kAlign = 4;
  for (const ElfW(Phdr) &header : llvm::ArrayRef(object.dlpi_phdr, object.dlpi_phnum)) {
    if (header.p_type != PT_NOTE || header.p_align > kAlign)
      continue;
    auto *at = reinterpret_cast<const uint8_t *>(object.dlpi_addr + header.p_vaddr);
    auto *end = at + header.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      auto *note = reinterpret_cast<const ElfW(Nhdr) *>(at);
      const uint8_t *name = at + sizeof(*note);
      const uint8_t *text = name + llvm::alignTo(note->n_namesz, kAlign);
      llvm::StringRef owner(reinterpret_cast<const char *>(name), note->n_namesz);
      if (note->n_type == NT_GNU_BUILD_ID && owner == llvm::StringRef("GNU", 4))
        return llvm::toHex(llvm::ArrayRef(text, note->n_descsz));
      at = text + llvm::alignTo(note->n_descsz, kAlign);
    }
  }
  return "";
}

static bool contains(const dl_phdr_info &object, const void *address) {
  auto place = reinterpret_cast<uintptr_t>(address);
  return llvm::any_of(llvm::ArrayRef(object.dlpi_phdr, object.dlpi_phnum), [&](auto &header) {
    uintptr_t begin = object.dlpi_addr + header.p_vaddr;
    return header.p_type == PT_LOAD && place >= begin && place < begin + header.p_memsz;
  });
}

static int addObject(dl_phdr_info *object, size_t, void *data) {
  llvm::StringRef name = llvm::sys::path::filename(object->dlpi_name);
  bool isOurs = contains(*object, reinterpret_cast<const void *>(&addObject));
  if (isOurs || name.starts_with("libtessera") || name.starts_with("libMLIR") ||
      name.starts_with("libLLVM")) {
    auto &build = *static_cast<Build *>(data);
    std::string id = buildId(*object);
    build.isComplete &= !id.empty();
    build.ids += id + "|";
  }
  return 0;
}

static const Build &thisBuild() {
  static const Build build = [] {
    Build found;
    dl_iterate_phdr(addObject, &found);
    return found;
  }();
  return build;
}

/// A digest of all that an artifact depends on; empty if some of it cannot be known here.
static std::string keyOf(const CompileOptions &options) {
  bool reports = options.kernels; // what compiles, as it compiles
  bool dependsOnTools =
      options.target.value_or(Target::cpu) != Target::cpu || !options.search.solver.empty();
  if (options.noCache || !options.text || reports || dependsOnTools ||
      !options.archs.empty() || options.warpgroups || !options.dialectPlugins.empty() ||
      !thisBuild().isComplete)
    return "";
  llvm::SHA256 hash;
  auto add = [&](llvm::StringRef text) {
    hash.update(std::to_string(text.size()) + ":");
    hash.update(text);
  };
  add(thisBuild().ids);
  std::vector<std::string> cpus = options.cpus;
  for (const std::string &cpu : cpus.empty() ? std::vector<std::string>{""} : cpus) {
    codegen::CpuOptions target;
    target.cpu = cpu;
    std::string found = codegen::targetKey(target);
    if (found.empty())
      return "";
    add(found);
  }
  if (!options.topology.empty()) {
    auto file = llvm::MemoryBuffer::getFile(options.topology);
    if (!file)
      return "";
    add((*file)->getBuffer());
  }
  for (const std::string &text :
       {*options.text, options.file, options.function, options.passes, options.compileFrom,
        options.schedule, options.topology, options.fusion, options.search.mode})
    add(text);
  const SearchRequest &search = options.search;
  for (double number : {double(options.objective), double(options.attentionSequence),
                        double(search.minimise), double(options.narrowReductions),
                        double(options.remarks), options.overlaps ? double(*options.overlaps) : -1,
                        search.memoryBudget.value_or(-1), double(search.fullyUseDevices),
                        double(search.devices), double(search.offersDevices), search.timeLimit})
    add(llvm::StringRef(reinterpret_cast<const char *>(&number), sizeof number));
  return llvm::toHex(hash.final(), /*LowerCase=*/true);
}

ArtifactCache::ArtifactCache(const CompileOptions &options)
    : files(options.cacheDirectory, ".artifact", kLimitBytes), key(keyOf(options)) {}

std::shared_ptr<const runtime::Artifact> ArtifactCache::load(std::string &messages) const {
  std::string bytes;
  llvm::json::Object about;
  if (key.empty() || !files.load(key, bytes, about))
    return nullptr;
  runtime::Expected<runtime::Artifact> artifact = runtime::parseArtifact(
      reinterpret_cast<const std::byte *>(bytes.data()), bytes.size(), "the cache");
  if (!artifact)
    return nullptr;
  messages += about.getString("messages").value_or("");
  return std::make_shared<const runtime::Artifact>(std::move(*artifact));
}

void ArtifactCache::store(const runtime::Artifact &artifact, llvm::StringRef messages) const {
  constexpr uint64_t kMostBytes = kLimitBytes / 8; // one entry does not take the place of all
  if (key.empty() || artifact.constants.size() > kMostBytes)
    return;
  runtime::Bytes bytes = runtime::serialize(artifact);
  if (bytes.size() > kMostBytes)
    return;
  llvm::StringRef object(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  files.store(key, object, llvm::json::Object{{"messages", llvm::json::fixUTF8(messages)}});
  files.trim();
}
