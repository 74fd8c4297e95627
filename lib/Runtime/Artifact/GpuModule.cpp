//===- GpuModule.cpp - The gpu section, written and read ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Eight bytes with the length of a JSON text, the text, then the images' code, each aligned to 64
// bytes from the section's start.
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/Artifact/GpuKernels.h"

#include "JsonNode.h"

#include <algorithm>
#include <cstring>

namespace tessera::runtime {

namespace {

constexpr int64_t kGpuVersion = 2;

using Json = nlohmann::ordered_json;

size_t aligned(size_t offset) {
  return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

constexpr const char *kPrecisions[] = {"any", "highest", "high"};

Json write(const GpuLaunch &launch) {
  Json arguments = Json::array();
  for (const GpuArgument &argument : launch.arguments)
    arguments.push_back({{"slot", argument.slot},
                         {"offset", argument.offset},
                         {"bytes", argument.bytes},
                         {"writes", argument.writes}});
  return {{"symbol", launch.symbol},
          {"precision", kPrecisions[static_cast<size_t>(launch.precision)]},
          {"grid", launch.grid},
          {"block", launch.block},
          {"shared_bytes", launch.sharedBytes},
          {"arguments", arguments}};
}

Json write(const GpuConvolution::Operand &operand) {
  return {{"slot", operand.slot},
          {"offset", operand.offset},
          {"shape", operand.shape},
          {"strides", operand.strides}};
}

constexpr const char *kConvolutionKinds[] = {"forward", "by_input", "by_weights"};

Json write(const GpuConvolution &convolution) {
  return {{"kind", kConvolutionKinds[static_cast<size_t>(convolution.kind)]},
          {"dtype", toString(convolution.dtype)},
          {"result", toString(convolution.result)},
          {"x", write(convolution.x)},
          {"w", write(convolution.w)},
          {"y", write(convolution.y)},
          {"padding", convolution.padding},
          {"strides", convolution.strides},
          {"dilations", convolution.dilations}};
}

/// Everything but the code; `offsets` are those of the images.
std::string header(const GpuModule &module, const std::vector<size_t> &offsets) {
  Json kernels = Json::array(), images = Json::array();
  for (const GpuKernel &kernel : module.kernels) {
    Json launches = Json::array();
    for (const GpuLaunch &launch : kernel.launches)
      launches.push_back(write(launch));
    kernels.push_back({{"launches", launches}, {"workspace_bytes", kernel.workspaceBytes}});
    if (kernel.convolution)
      kernels.back()["convolution"] = write(*kernel.convolution);
  }
  for (size_t i = 0; i < module.images.size(); ++i)
    images.push_back({{"arch", module.images[i].arch},
                      {"symbols", module.images[i].symbols},
                      {"offset", offsets[i]},
                      {"bytes", module.images[i].code.size()}});
  Json json{{"version", kGpuVersion}, {"kernels", kernels}, {"images", images}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::array<int64_t, 3> readExtents(const Node &node) {
  std::vector<int64_t> extents = node.integers();
  if (extents.size() != 3)
    node.fail("expected three numbers");
  return {extents[0], extents[1], extents[2]};
}

/// The position of a text in `list`.
template <size_t N>
size_t readChoice(const Node &node, const char *const (&list)[N], const char *what) {
  std::string text = node.text();
  const auto *known = std::find(std::begin(list), std::end(list), text);
  if (known == std::end(list))
    node.fail("'" + text + "' is not a valid " + what);
  return static_cast<size_t>(known - std::begin(list));
}

GpuLaunch readLaunch(const Node &node) {
  GpuLaunch launch;
  launch.symbol = node["symbol"].text();
  launch.precision =
      static_cast<GpuPrecision>(readChoice(node["precision"], kPrecisions, "precision"));
  launch.grid = readExtents(node["grid"]);
  launch.block = readExtents(node["block"]);
  launch.sharedBytes = node["shared_bytes"].integer();
  for (const Node &argument : node["arguments"].list())
    launch.arguments.push_back({argument["slot"].integer(), argument["offset"].integer(),
                                argument["bytes"].integer(), argument["writes"].boolean()});
  return launch;
}

GpuConvolution::Operand readOperand(const Node &node) {
  return {node["slot"].integer(), node["offset"].integer(), node["shape"].integers(),
          node["strides"].integers()};
}

GpuConvolution readConvolution(const Node &node) {
  GpuConvolution convolution;
  convolution.kind = static_cast<GpuConvolution::Kind>(
      readChoice(node["kind"], kConvolutionKinds, "kind of convolution"));
  convolution.dtype = node["dtype"].dtype();
  convolution.result = node["result"].dtype();
  convolution.x = readOperand(node["x"]);
  convolution.w = readOperand(node["w"]);
  convolution.y = readOperand(node["y"]);
  convolution.padding = node["padding"].integers();
  convolution.strides = node["strides"].integers();
  convolution.dilations = node["dilations"].integers();
  return convolution;
}

GpuModule readModule(const Node &node, const std::byte *data, size_t size) {
  if (int64_t version = node["version"].integer(); version != kGpuVersion)
    node["version"].fail("version " + std::to_string(version) + ", this program reads version " +
                         std::to_string(kGpuVersion));
  GpuModule module;
  for (const Node &kernel : node["kernels"].list()) {
    GpuKernel &read = module.kernels.emplace_back();
    read.workspaceBytes = kernel["workspace_bytes"].integer();
    if (kernel.has("convolution"))
      read.convolution = readConvolution(kernel["convolution"]);
    for (const Node &launch : kernel["launches"].list())
      read.launches.push_back(readLaunch(launch));
  }
  for (const Node &image : node["images"].list()) {
    int64_t offset = image["offset"].integer(), bytes = image["bytes"].integer();
    auto limit = static_cast<int64_t>(size);
    if (offset < 0 || bytes < 0 || offset > limit || bytes > limit - offset)
      image.fail("lies outside the section");
    module.images.push_back({image["arch"].text(), image["symbols"].texts(),
                             Bytes(data + offset, data + offset + bytes)});
  }
  return module;
}

} // namespace

std::vector<std::string> GpuModule::architectures() const {
  std::vector<std::string> result;
  for (const GpuImage &image : images)
    if (std::find(result.begin(), result.end(), image.arch) == result.end())
      result.push_back(image.arch);
  return result;
}

std::string GpuModule::architecturesText() const {
  std::string text;
  for (const std::string &arch : architectures())
    text += (text.empty() ? "" : ", ") + arch;
  return text;
}

Bytes serialize(const GpuModule &module) {
  // The offsets are in the text, and their digits decide its length: room is left for the longest.
  std::vector<size_t> offsets(module.images.size(), ~size_t(0));
  size_t begin = aligned(sizeof(uint64_t) + header(module, offsets).size()), end = begin;
  for (size_t i = 0; i < offsets.size(); ++i) {
    offsets[i] = aligned(end);
    end = offsets[i] + module.images[i].code.size();
  }
  std::string text = header(module, offsets);
  Bytes bytes(end);
  uint64_t length = text.size();
  std::memcpy(bytes.data(), &length, sizeof(length));
  std::memcpy(bytes.data() + sizeof(length), text.data(), text.size());
  for (size_t i = 0; i < offsets.size(); ++i)
    if (const Bytes &code = module.images[i].code; !code.empty())
      std::memcpy(bytes.data() + offsets[i], code.data(), code.size());
  return bytes;
}

Expected<GpuModule> parseGpuModule(const std::byte *data, size_t size) {
  uint64_t length = 0;
  if (size < sizeof(length))
    return Status::error("gpu: truncated");
  std::memcpy(&length, data, sizeof(length));
  if (length > size - sizeof(length))
    return Status::error("gpu: the header is longer than the section");
  const auto *text = reinterpret_cast<const char *>(data) + sizeof(length);
  try {
    auto document = nlohmann::json::parse(text, text + length);
    return readModule(Node(document, "gpu"), data, size);
  } catch (const ParseError &error) {
    return Status::error(error.message);
  } catch (const nlohmann::json::exception &error) {
    return Status::error(std::string("gpu: not valid JSON: ") + error.what());
  } catch (const std::bad_alloc &) {
    return Status::error("gpu: out of memory");
  }
}

} // namespace tessera::runtime
