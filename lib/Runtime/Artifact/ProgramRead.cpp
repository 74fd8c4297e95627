//===- ProgramRead.cpp - A program from JSON ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "JsonNode.h"

namespace tessera::runtime {

namespace {

constexpr int kMaxNesting = 200;

sharding::Layout readLayout(const Node &node, const Shape &globalShape) {
  sharding::Layout layout{globalShape, {}, {}};
  for (const Node &dim : node["dims"].list())
    layout.dims.push_back({dim["axes"].axes(), dim["step"].integer(), dim["offset"].integer(),
                           dim["length"].integer(), dim.integerOr("divisor", 1)});
  if (node.has("partial"))
    for (const Node &part : node["partial"].list())
      layout.partial.push_back({part["axis"].axis(), part["kind"].reduceKind()});
  return layout;
}

Home readHome(const Node &node, const Shape &globalShape) {
  Home home{node["part"].integer(), node["slot"].integer(),
            readLayout(node["layout"], globalShape)};
  if (node.has("mesh"))
    home.mesh = node["mesh"].integer();
  return home;
}

Argument readArgument(const Node &node) {
  Argument argument{
      node["name"].text(), node["dtype"].dtype(), node["global_shape"].integers(), {}, {}};
  if (node.has("range")) {
    std::vector<int64_t> range = node["range"].integers();
    if (range.size() != 2)
      node["range"].fail("expected [lo, hi]");
    argument.range = {range[0], range[1]};
  }
  for (const Node &home : node["homes"].list())
    argument.homes.push_back(readHome(home, argument.globalShape));
  return argument;
}

Result readResult(const Node &node) {
  Shape globalShape = node["global_shape"].integers();
  Result result{node["name"].text(),
                node["dtype"].dtype(),
                globalShape,
                {},
                readHome(node["home"], globalShape)};
  if (node.has("feeds"))
    result.feeds = node["feeds"].integer();
  return result;
}

Slot readSlot(const Node &node) {
  std::string space = node["space"].text();
  if (space != "arena" && space != "constant")
    node["space"].fail("expected 'arena' or 'constant'");
  return {node.textOr("name"),      space == "arena" ? Slot::Space::arena : Slot::Space::constant,
          node["offset"].integer(), node["bytes"].integer(),
          node["dtype"].dtype(),    node["shape"].integers()};
}

std::vector<Operand> readOperands(const Node &node) {
  std::vector<Operand> operands;
  for (const Node &each : node.list()) {
    Operand operand;
    operand.src = each.integerOr("src", -1);
    operand.dst = each.integerOr("dst", -1);
    operand.dtype = each["dtype"].dtype();
    operand.globalShape = each["global_shape"].integers();
    operand.source = readLayout(each["source"], operand.globalShape);
    operand.target = readLayout(each["target"], operand.globalShape);
    if (each.has("fill"))
      operand.fill = each["fill"].number();
    operands.push_back(std::move(operand));
  }
  return operands;
}

LaunchStep readLaunch(const Node &node) {
  LaunchStep launch{node["kernel"].integer(), node["args"].integers(), node["reads"].integer()};
  launch.blocks = node.integerOr("blocks", 1);
  if (node.has("cut"))
    for (const Node &each : node["cut"].list())
      launch.cut.push_back(each.boolean());
  launch.joins = node.booleanOr("joins", false);
  return launch;
}

Epilogue readEpilogue(const Node &node) {
  for (Epilogue each : {Epilogue::relu, Epilogue::gelu})
    if (node.text() == toString(each))
      return each;
  node.fail("'" + node.text() + "' is not a valid epilogue; expected relu or gelu");
  return Epilogue::none;
}

GemmStep readGemm(const Node &node) {
  GemmStep gemm;
  gemm.dtype = node["dtype"].dtype();
  if (node.has("c_dtype"))
    gemm.resultDType = node["c_dtype"].dtype();
  gemm.a = node["a"].integer();
  gemm.b = node["b"].integer();
  gemm.c = node["c"].integer();
  gemm.batch = node.integerOr("batch", 1);
  gemm.m = node["m"].integer();
  gemm.n = node["n"].integer();
  gemm.k = node["k"].integer();
  gemm.transA = node.booleanOr("trans_a", false);
  gemm.transB = node.booleanOr("trans_b", false);
  gemm.lda = node["lda"].integer();
  gemm.ldb = node["ldb"].integer();
  gemm.ldc = node["ldc"].integer();
  gemm.strideA = node.integerOr("stride_a", 0);
  gemm.strideB = node.integerOr("stride_b", 0);
  gemm.strideC = node.integerOr("stride_c", 0);
  gemm.accumulate = node.booleanOr("accumulate", false);
  if (node.has("bias"))
    gemm.bias = node["bias"].integer();
  if (node.has("epilogue"))
    gemm.epilogue = readEpilogue(node["epilogue"]);
  return gemm;
}

std::array<int64_t, 3> readTriple(const Node &node) {
  Shape numbers = node.integers();
  if (numbers.size() != 3)
    node.fail("expected three numbers, of a, b and c");
  numbers.resize(3);
  return {numbers[0], numbers[1], numbers[2]};
}

ContractStep readContract(const Node &node) {
  ContractStep contract;
  contract.dtype = node["dtype"].dtype();
  contract.a = node["a"].integer();
  contract.b = node["b"].integer();
  contract.c = node["c"].integer();
  contract.starts = readTriple(node["starts"]);
  for (const Node &loop : node["loops"].list())
    contract.loops.push_back({loop["extent"].integer(), readTriple(loop["strides"])});
  contract.accumulate = node.booleanOr("accumulate", false);
  if (node.has("within"))
    for (const Node &bound : node["within"].list()) {
      ContractBounds &made = contract.within.emplace_back();
      for (const Node &stride : bound["strides"].list())
        made.strides.push_back(stride.integer());
      made.begin = bound["begin"].integer(), made.end = bound["end"].integer();
    }
  return contract;
}

CollectiveStep readCollective(const Node &node) {
  CollectiveStep step;
  auto kind = sharding::parseCollectiveKind(node["kind"].text());
  if (!kind)
    node["kind"].fail("'" + node["kind"].text() + "' is not a valid kind of collective");
  step.kind = *kind;
  step.mesh = node["mesh"].integer();
  if (node.has("target_mesh"))
    step.targetMesh = node["target_mesh"].integer();
  step.axes = node["axes"].axes();
  if (node.has("reduction"))
    step.reduction = node["reduction"].reduceKind();
  if (node.has("token"))
    step.token = node["token"].integer();
  step.operands = readOperands(node["operands"]);
  step.wireBytes = node.integerOr("wire_bytes", 0);
  step.id = node["id"].integer();
  return step;
}

TransferStep readTransfer(const Node &node, bool isSend) {
  return {isSend,
          node["source_mesh"].integer(),
          node["target_mesh"].integer(),
          readOperands(node["operands"]),
          node.integerOr("wire_bytes", 0),
          node["id"].integer()};
}

Bound readBound(const Node &node) {
  if (node.isObject())
    return {0, node["slot"].integer()};
  return {node.integer(), {}};
}

StepList readSteps(const Node &node, int depth);

Step readStep(const Node &node, int depth) {
  Step step{node["order"].integer(), node.textOr("loc"), node.textOr("name"), {}};
  std::string op = node["op"].text();
  if (op == "launch")
    step.action = readLaunch(node);
  else if (op == "gemm")
    step.action = readGemm(node);
  else if (op == "contract")
    step.action = readContract(node);
  else if (op == "collective")
    step.action = readCollective(node);
  else if (op == "send" || op == "recv")
    step.action = readTransfer(node, op == "send");
  else if (op == "wait")
    step.action = WaitStep{node["token"].integer()};
  else if (op == "copy")
    step.action = CopyStep{node["src"].integer(), node["dst"].integer(), node["bytes"].integer()};
  else if (op == "loop")
    step.action = LoopStep{node["iv"].integer(), readBound(node["lower"]), readBound(node["upper"]),
                           readBound(node["step"]), readSteps(node["body"], depth + 1)};
  else if (op == "while")
    step.action = WhileStep{readSteps(node["before"], depth + 1), node["condition"].integer(),
                            readSteps(node["body"], depth + 1)};
  else if (op == "if")
    step.action = IfStep{node["condition"].integer(), readSteps(node["then"], depth + 1),
                         readSteps(node["else"], depth + 1)};
  else
    node["op"].fail("'" + op + "' is not a valid step");
  return step;
}

StepList readSteps(const Node &node, int depth) {
  if (depth > kMaxNesting)
    node.fail("steps are nested deeper than " + std::to_string(kMaxNesting));
  StepList steps;
  for (const Node &each : node.list())
    steps.push_back(readStep(each, depth));
  return steps;
}

Part readPart(const Node &node) {
  Part part;
  part.name = node["name"].text();
  part.mesh = node["mesh"].integer();
  part.arenaBytes = node["arena_bytes"].integer();
  if (node.has("packed_bytes"))
    part.packedBytes = node["packed_bytes"].integer();
  for (const Node &slot : node["slots"].list())
    part.slots.push_back(readSlot(slot));
  if (node.has("coordinates"))
    for (const Node &coordinate : node["coordinates"].list()) {
      part.coordinates.push_back({coordinate["slot"].integer(), coordinate["axes"].axes()});
      if (coordinate.has("mesh"))
        part.coordinates.back().mesh = coordinate["mesh"].integer();
    }
  part.steps = readSteps(node["steps"], 0);
  return part;
}

Program readProgram(const Node &node) {
  if (int64_t version = node["version"].integer(); version != 1 && version != 2)
    node["version"].fail("this program reads versions 1 and 2");
  Program program;
  for (const Node &mesh : node["meshes"].list())
    program.meshes.push_back({mesh["name"].text(), mesh["shape"].integers(),
                              mesh["dim_names"].texts(), mesh["process_ids"].integers()});
  program.kernels = node["kernels"].texts();
  // Without them a wrong slot would be an access out of bounds.
  if (!program.kernels.empty() && !node.has("kernel_bytes"))
    node["kernels"].fail("'kernel_bytes', the bytes that each kernel accesses, is missing; compile "
                         "the program again");
  if (node.has("kernel_bytes"))
    for (const Node &bytes : node["kernel_bytes"].list())
      program.kernelBytes.push_back(bytes.integers());
  for (const Node &argument : node["arguments"].list())
    program.arguments.push_back(readArgument(argument));
  for (const Node &result : node["results"].list())
    program.results.push_back(readResult(result));
  for (const Node &part : node["parts"].list())
    program.parts.push_back(readPart(part));
  return program;
}

} // namespace

Expected<Program> parseProgram(std::string_view text, int64_t constantBytes) {
  try {
    auto document = nlohmann::json::parse(text);
    Program program = readProgram(Node(document, "program"));
    TESSERA_RETURN_IF_ERROR(verify(program, constantBytes));
    return program;
  } catch (const ParseError &error) {
    return Status::error(error.message);
  } catch (const nlohmann::json::exception &error) {
    return Status::error(std::string("program: not valid JSON: ") + error.what());
  } catch (const std::bad_alloc &) {
    return Status::error("program: out of memory");
  }
}

int64_t Program::numDevices() const {
  int64_t devices = 1;
  for (const sharding::Mesh &mesh : meshes)
    for (int64_t id : mesh.processIds)
      devices = std::max(devices, id + 1);
  return devices;
}

const sharding::Mesh &Program::meshOf(const Home &home) const {
  return meshes[home.mesh ? *home.mesh : parts[home.part].mesh];
}

template <typename List> static int64_t findByName(const List &list, std::string_view name) {
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i].name == name)
      return static_cast<int64_t>(i);
  return -1;
}

int64_t Program::findArgument(std::string_view name) const {
  return findByName(arguments, name);
}
int64_t Program::findResult(std::string_view name) const {
  return findByName(results, name);
}

} // namespace tessera::runtime
