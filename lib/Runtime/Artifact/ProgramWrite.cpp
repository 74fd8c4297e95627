//===- ProgramWrite.cpp - A program as JSON -------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Steps.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace tessera::runtime {

namespace {

using Json = nlohmann::ordered_json;

// Names come from source files: invalid UTF-8 is replaced instead of an exception.
std::string dump(const Json &json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json write(const sharding::AxisRef &axis) {
  return Json::array({axis.axis, axis.pre, axis.size});
}

Json write(const sharding::AxisList &axes) {
  Json json = Json::array();
  for (const sharding::AxisRef &axis : axes)
    json.push_back(write(axis));
  return json;
}

Json write(const sharding::Layout &layout) {
  Json dims = Json::array(), partial = Json::array();
  for (const sharding::DimLayout &dim : layout.dims) {
    dims.push_back({{"axes", write(dim.axes)},
                    {"step", dim.step},
                    {"offset", dim.offset},
                    {"length", dim.length}});
    if (dim.divisor != 1)
      dims.back()["divisor"] = dim.divisor;
  }
  for (const sharding::PartialAxis &part : layout.partial)
    partial.push_back({{"axis", write(part.axis)}, {"kind", sharding::toString(part.kind)}});
  Json json{{"dims", dims}};
  if (!partial.empty())
    json["partial"] = partial;
  return json;
}

Json write(const Home &home) {
  Json json{{"part", home.part}, {"slot", home.slot}, {"layout", write(home.layout)}};
  if (home.mesh)
    json["mesh"] = *home.mesh;
  return json;
}

Json write(const Argument &argument) {
  Json json{{"name", argument.name},
            {"dtype", toString(argument.dtype)},
            {"global_shape", argument.globalShape}};
  if (argument.range)
    json["range"] = *argument.range;
  json["homes"] = Json::array();
  for (const Home &home : argument.homes)
    json["homes"].push_back(write(home));
  return json;
}

Json write(const Result &result) {
  Json json{{"name", result.name},
            {"dtype", toString(result.dtype)},
            {"global_shape", result.globalShape}};
  if (result.feeds)
    json["feeds"] = *result.feeds;
  json["home"] = write(result.home);
  return json;
}

Json write(const Slot &slot) {
  return {{"name", slot.name},
          {"space", slot.space == Slot::Space::arena ? "arena" : "constant"},
          {"offset", slot.offset},
          {"bytes", slot.bytes},
          {"dtype", toString(slot.dtype)},
          {"shape", slot.shape}};
}

Json write(const Operand &operand) {
  Json json = Json::object();
  if (operand.src >= 0)
    json["src"] = operand.src;
  if (operand.dst >= 0)
    json["dst"] = operand.dst;
  json["dtype"] = toString(operand.dtype);
  json["global_shape"] = operand.globalShape;
  json["source"] = write(operand.source);
  json["target"] = write(operand.target);
  if (operand.fill) {
    // JSON has no infinities.
    if (std::isfinite(*operand.fill))
      json["fill"] = *operand.fill;
    else
      json["fill"] = std::isnan(*operand.fill) ? "nan" : *operand.fill > 0 ? "inf" : "-inf";
  }
  return json;
}

Json write(const std::vector<Operand> &operands) {
  Json json = Json::array();
  for (const Operand &operand : operands)
    json.push_back(write(operand));
  return json;
}

Json write(const Bound &bound) {
  if (bound.slot)
    return {{"slot", *bound.slot}};
  return bound.value;
}

Json write(const StepList &steps);

/// Adds the fields of each kind of step.
struct ActionWriter {
  Json &json;

  void operator()(const LaunchStep &launch) const {
    json.update({{"op", "launch"},
                 {"kernel", launch.kernel},
                 {"args", launch.slots},
                 {"reads", launch.reads}});
    if (launch.blocks != 1)
      json.update({{"blocks", launch.blocks}, {"cut", launch.cut}});
    if (launch.joins)
      json["joins"] = true;
  }
  void operator()(const GemmStep &gemm) const {
    json.update({{"op", "gemm"},
                 {"dtype", toString(gemm.dtype)},
                 {"a", gemm.a},
                 {"b", gemm.b},
                 {"c", gemm.c},
                 {"batch", gemm.batch},
                 {"m", gemm.m},
                 {"n", gemm.n},
                 {"k", gemm.k},
                 {"trans_a", gemm.transA},
                 {"trans_b", gemm.transB},
                 {"lda", gemm.lda},
                 {"ldb", gemm.ldb},
                 {"ldc", gemm.ldc},
                 {"stride_a", gemm.strideA},
                 {"stride_b", gemm.strideB},
                 {"stride_c", gemm.strideC},
                 {"accumulate", gemm.accumulate}});
    if (gemm.resultDType)
      json["c_dtype"] = toString(*gemm.resultDType);
    if (gemm.bias)
      json["bias"] = *gemm.bias;
    if (gemm.epilogue != Epilogue::none)
      json["epilogue"] = toString(gemm.epilogue);
  }
  void operator()(const ContractStep &contract) const {
    Json loops = Json::array();
    for (const ContractLoop &loop : contract.loops)
      loops.push_back({{"extent", loop.extent}, {"strides", loop.strides}});
    json.update({{"op", "contract"},
                 {"dtype", toString(contract.dtype)},
                 {"a", contract.a},
                 {"b", contract.b},
                 {"c", contract.c},
                 {"starts", contract.starts},
                 {"loops", loops},
                 {"accumulate", contract.accumulate}});
    for (const ContractBounds &bound : contract.within)
      json["within"].push_back(
          {{"strides", bound.strides}, {"begin", bound.begin}, {"end", bound.end}});
  }
  void operator()(const CollectiveStep &collective) const {
    json.update({{"op", "collective"},
                 {"kind", sharding::toString(collective.kind)},
                 {"id", collective.id},
                 {"mesh", collective.mesh},
                 {"axes", write(collective.axes)}});
    if (collective.targetMesh)
      json["target_mesh"] = *collective.targetMesh;
    if (collective.reduction)
      json["reduction"] = sharding::toString(*collective.reduction);
    if (collective.token)
      json["token"] = *collective.token;
    json["operands"] = write(collective.operands);
    json["wire_bytes"] = collective.wireBytes;
  }
  void operator()(const TransferStep &transfer) const {
    json.update({{"op", transfer.isSend ? "send" : "recv"},
                 {"id", transfer.id},
                 {"source_mesh", transfer.sourceMesh},
                 {"target_mesh", transfer.targetMesh},
                 {"operands", write(transfer.operands)},
                 {"wire_bytes", transfer.wireBytes}});
  }
  void operator()(const WaitStep &wait) const {
    json.update({{"op", "wait"}, {"token", wait.token}});
  }
  void operator()(const CopyStep &copy) const {
    json.update({{"op", "copy"}, {"src", copy.src}, {"dst", copy.dst}, {"bytes", copy.bytes}});
  }
  void operator()(const LoopStep &loop) const {
    json.update({{"op", "loop"},
                 {"iv", loop.iv},
                 {"lower", write(loop.lower)},
                 {"upper", write(loop.upper)},
                 {"step", write(loop.step)},
                 {"body", write(loop.body)}});
  }
  void operator()(const WhileStep &loop) const {
    json.update({{"op", "while"},
                 {"before", write(loop.before)},
                 {"condition", loop.condition},
                 {"body", write(loop.body)}});
  }
  void operator()(const IfStep &branch) const {
    json.update({{"op", "if"},
                 {"condition", branch.condition},
                 {"then", write(branch.thenSteps)},
                 {"else", write(branch.elseSteps)}});
  }
};

Json write(const Step &step) {
  Json json = Json::object();
  std::visit(ActionWriter{json}, step.action);
  json["order"] = step.order;
  if (!step.loc.empty())
    json["loc"] = step.loc;
  if (!step.name.empty())
    json["name"] = step.name;
  return json;
}

Json write(const StepList &steps) {
  Json json = Json::array();
  for (const Step &step : steps)
    json.push_back(write(step));
  return json;
}

Json write(const sharding::Mesh &mesh) {
  return {{"name", mesh.name},
          {"shape", mesh.shape},
          {"dim_names", mesh.axisNames},
          {"process_ids", mesh.processIds.vec()}};
}

Json write(const Coordinate &coordinate) {
  Json json = {{"slot", coordinate.slot}, {"axes", write(coordinate.axes)}};
  if (coordinate.mesh)
    json["mesh"] = *coordinate.mesh;
  return json;
}

/// `"key": [` one element per line `]`.
template <typename List>
std::string lines(std::string_view key, const List &list, const char *indent) {
  std::string text = indent + ("\"" + std::string(key) + "\": [");
  bool first = true;
  for (const auto &element : list) {
    text += std::string(first ? "\n " : ",\n ") + indent + dump(write(element));
    first = false;
  }
  return text + "]";
}

std::string partText(const Part &part) {
  return "  {\"name\": " + dump(part.name) + ", \"mesh\": " + std::to_string(part.mesh) +
         ", \"arena_bytes\": " + std::to_string(part.arenaBytes) +
         (part.packedBytes ? ", \"packed_bytes\": " + std::to_string(part.packedBytes) : "") +
         ",\n" + lines("slots", part.slots, "   ") + ",\n" +
         lines("coordinates", part.coordinates, "   ") + ",\n" + lines("steps", part.steps, "   ") +
         "}";
}

} // namespace

std::string_view toString(Epilogue epilogue) {
  return epilogue == Epilogue::relu ? "relu" : epilogue == Epilogue::gelu ? "gelu" : "none";
}

std::string toJson(const Program &program) {
  std::string parts;
  for (const Part &part : program.parts)
    parts += (parts.empty() ? "\n" : ",\n") + partText(part);
  // Readers of version 1 would call kernels that run by blocks once.
  bool hasBlocks =
      hasStep<LaunchStep>(program, [](const LaunchStep &step) { return step.blocks != 1; });
  return "{\"version\": " + std::to_string(hasBlocks ? 2 : 1) + ",\n" +
         lines("meshes", program.meshes, " ") + ",\n \"kernels\": " + dump(Json(program.kernels)) +
         ",\n" +
         (program.kernelBytes.empty()
              ? ""
              : " \"kernel_bytes\": " + dump(Json(program.kernelBytes)) + ",\n") +
         lines("arguments", program.arguments, " ") + ",\n" +
         lines("results", program.results, " ") + ",\n \"parts\": [" + parts + "]}\n";
}

std::string toJson(const sharding::Layout &layout) {
  return dump(write(layout));
}

std::string toJson(const Program &program, const Home &home) {
  return dump({{"mesh", write(program.meshOf(home))}, {"layout", write(home.layout)}});
}

} // namespace tessera::runtime
