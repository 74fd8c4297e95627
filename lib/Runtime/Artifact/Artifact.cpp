//===- Artifact.cpp - The file of a compiled program ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/Artifact/Artifact.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>

namespace tessera::runtime {

// The format is little endian and is copied, not converted.
static_assert(std::endian::native == std::endian::little);

namespace {

constexpr std::array<char, 8> kMagic = {'T', 'E', 'S', 'S', 'E', 'R', 'A', '\n'};
constexpr uint32_t kVersion = 2;

struct Header {
  std::array<char, 8> magic;
  uint32_t version;
  uint32_t sections;
  uint64_t fileSize;
  uint64_t tableChecksum;
};
static_assert(sizeof(Header) == 32);

struct Section {
  std::array<char, 16> name; ///< zero padded
  uint64_t offset;
  uint64_t size;
  uint64_t checksum;

  std::string_view text() const {
    return {name.data(),
            static_cast<size_t>(std::find(name.begin(), name.end(), '\0') - name.begin())};
  }
};
static_assert(sizeof(Section) == 40);

size_t aligned(size_t offset) {
  return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

/// The contents of the sections of this version.
struct Contents {
  std::optional<std::string_view> program;
  std::string_view report, kernels, constants, gpu;
  std::map<std::string, std::string_view> images; ///< kernels.N
};

Status readSections(const std::byte *data, size_t size, Contents &contents) {
  Header header;
  if (size < sizeof(header))
    return Status::error("truncated: " + std::to_string(size) +
                         " bytes are fewer than an artifact's header");
  std::memcpy(&header, data, sizeof(header));
  if (!isArtifact({reinterpret_cast<const char *>(data), size}))
    return Status::error("not a Tessera artifact (it does not start with TESSERA)");
  if (header.version != kVersion)
    return Status::error("artifact version " + std::to_string(header.version) +
                         ", this program reads version " + std::to_string(kVersion) +
                         "; compile the program again");
  if (header.fileSize != size)
    return Status::error("the header says " + std::to_string(header.fileSize) +
                         " bytes, the file has " + std::to_string(size) +
                         ": it is truncated or damaged");
  if (header.sections > (size - sizeof(header)) / sizeof(Section))
    return Status::error("damaged: no room for " + std::to_string(header.sections) + " sections");
  std::vector<Section> table(header.sections);
  size_t tableBytes = table.size() * sizeof(Section);
  if (!table.empty())
    std::memcpy(table.data(), data + sizeof(header), tableBytes);
  if (fnv1a(data + sizeof(header), tableBytes) != header.tableChecksum)
    return Status::error("damaged: the checksum of the section table does not match");
  for (const Section &section : table) {
    std::string name(section.text());
    if (section.offset % kAlignment != 0 || section.offset > size ||
        section.size > size - section.offset)
      return Status::error("damaged: section '" + name + "' lies outside the file");
    const auto *begin = reinterpret_cast<const char *>(data + section.offset);
    if (fnv1a(begin, section.size) != section.checksum)
      return Status::error("damaged: the checksum of section '" + name + "' does not match");
    std::string_view bytes(begin, section.size);
    if (name == "program")
      contents.program = bytes;
    else if (name == "report")
      contents.report = bytes;
    else if (name == "kernels")
      contents.kernels = bytes;
    else if (name.starts_with("kernels."))
      contents.images[name] = bytes;
    else if (name == "constants")
      contents.constants = bytes;
    else if (name == "gpu")
      contents.gpu = bytes;
  }
  if (!contents.program)
    return Status::error("the artifact has no section 'program'");
  return {};
}

Bytes toBytes(std::string_view text) {
  const auto *begin = reinterpret_cast<const std::byte *>(text.data());
  return Bytes(begin, begin + text.size());
}

std::string_view view(const Bytes &bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

std::string imageName(size_t variant) {
  return "kernels." + std::to_string(variant);
}

Status checkKernels(const Artifact &artifact) {
  if (!artifact.gpu.empty())
    return verify(artifact.gpu, artifact.program);
  if (!artifact.program.kernels.empty() && artifact.kernels.empty())
    return Status::error("the program names kernels, but the artifact has neither a section "
                         "'kernels' nor a section 'gpu'");
  for (const CpuKernels &variant : artifact.kernels)
    if (variant.tasks.size() != artifact.program.kernels.size() ||
        std::any_of(variant.tasks.begin(), variant.tasks.end(), [](int64_t n) { return n < 1; }))
      return Status::error("kernels for '" + variant.cpu +
                           "': expected a positive number of tasks for each kernel");
  return {};
}

} // namespace

uint64_t Artifact::fingerprint() const {
  std::string text = toJson(program);
  return fnv1a(constants.data(), constants.size(), fnv1a(text.data(), text.size()));
}

Bytes serialize(const Artifact &artifact) {
  std::string program = toJson(artifact.program);
  std::vector<std::pair<std::string_view, std::string_view>> parts = {{"program", program}};
  if (!artifact.report.empty())
    parts.emplace_back("report", artifact.report);
  std::string kernels = artifact.kernels.empty() ? "" : toJson(artifact.kernels);
  if (!kernels.empty())
    parts.emplace_back("kernels", kernels);
  std::vector<std::string> names;
  for (size_t i = 0; i < artifact.kernels.size(); ++i)
    names.push_back(imageName(i));
  for (size_t i = 0; i < artifact.kernels.size(); ++i)
    parts.emplace_back(names[i], view(artifact.kernels[i].image));
  if (!artifact.constants.empty())
    parts.emplace_back("constants", view(artifact.constants));
  Bytes gpu = artifact.gpu.empty() ? Bytes() : serialize(artifact.gpu);
  if (!gpu.empty())
    parts.emplace_back("gpu", view(gpu));

  std::vector<Section> table;
  size_t offset = aligned(sizeof(Header) + parts.size() * sizeof(Section));
  size_t end = offset;
  for (auto &[name, content] : parts) {
    Section section{{}, offset, content.size(), fnv1a(content.data(), content.size())};
    std::copy(name.begin(), name.end(), section.name.begin());
    table.push_back(section);
    end = offset + content.size();
    offset = aligned(end);
  }
  Bytes file(end);
  Header header{kMagic, kVersion, static_cast<uint32_t>(table.size()), end,
                fnv1a(table.data(), table.size() * sizeof(Section))};
  std::memcpy(file.data(), &header, sizeof(header));
  std::memcpy(file.data() + sizeof(header), table.data(), table.size() * sizeof(Section));
  for (size_t i = 0; i < parts.size(); ++i)
    std::memcpy(file.data() + table[i].offset, parts[i].second.data(), parts[i].second.size());
  return file;
}

bool isArtifact(std::string_view bytes) {
  return bytes.starts_with(std::string_view(kMagic.data(), kMagic.size()));
}

Expected<Artifact> parseArtifact(const std::byte *data, size_t size, const std::string &origin) {
  Contents contents;
  TESSERA_RETURN_IF_ERROR(readSections(data, size, contents).in(origin));
  auto program = parseProgram(*contents.program, static_cast<int64_t>(contents.constants.size()));
  if (!program)
    return program.status().in(origin);
  Artifact artifact{
      std::move(*program), std::string(contents.report), {}, toBytes(contents.constants)};
  if (!contents.kernels.empty()) {
    auto variants = parseCpuKernels(contents.kernels);
    if (!variants)
      return variants.status().in(origin);
    artifact.kernels = std::move(*variants);
    for (size_t i = 0; i < artifact.kernels.size(); ++i)
      artifact.kernels[i].image = toBytes(contents.images[imageName(i)]);
  }
  if (!contents.gpu.empty()) {
    auto gpu = parseGpuModule(reinterpret_cast<const std::byte *>(contents.gpu.data()),
                              contents.gpu.size());
    if (!gpu)
      return gpu.status().in(origin);
    artifact.gpu = std::move(*gpu);
  }
  TESSERA_RETURN_IF_ERROR(checkKernels(artifact).in(origin));
  return artifact;
}

Expected<Artifact> readArtifact(const std::string &path) {
  auto bytes = readFile(path);
  if (!bytes)
    return bytes.status();
  return parseArtifact(bytes->data(), bytes->size(), path);
}

Status writeArtifact(const Artifact &artifact, const std::string &path) {
  TESSERA_RETURN_IF_ERROR(
      verify(artifact.program, static_cast<int64_t>(artifact.constants.size())).in(path));
  TESSERA_RETURN_IF_ERROR(checkKernels(artifact).in(path));
  Bytes bytes = serialize(artifact);
  return writeFile(path, bytes.data(), bytes.size());
}

} // namespace tessera::runtime
