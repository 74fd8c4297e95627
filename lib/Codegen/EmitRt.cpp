//===- EmitRt.cpp - Plan the arena and write the steps --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FunctionEnds.h"
#include "PartEmitter.h"
#include "tessera/Codegen/Passes.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"

namespace tessera::codegen {
#define GEN_PASS_DEF_CODEGENEMITRT
#include "tessera/Codegen/Passes.h.inc"
} // namespace tessera::codegen

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;
using dist::DistDialect;

/// The mesh of a local function. A program without a mesh gets a line of its devices.
static FlatSymbolRefAttr meshOf(func::FuncOp function, OpBuilder &builder) {
  if (auto mesh = function->getAttrOfType<FlatSymbolRefAttr>(DistDialect::kMesh))
    return mesh;
  SmallVector<int64_t> devices = {0};
  if (auto given = function->getAttrOfType<DenseI64ArrayAttr>(DistDialect::kMeshDevices))
    devices.assign(given.asArrayRef().begin(), given.asArrayRef().end());
  auto module = function->getParentOfType<ModuleOp>();
  std::string name = "devices";
  while (module.lookupSymbol(name))
    name += "_";
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  dist::ProcessMeshOp::create(
      builder, function.getLoc(), name, ArrayRef<int64_t>{static_cast<int64_t>(devices.size())},
      builder.getStrArrayAttr({"device"}), builder.getDenseI64ArrayAttr(devices));
  return FlatSymbolRefAttr::get(builder.getContext(), name);
}

/// The global type in an argument's or result's attributes, or its own.
static RankedTensorType globalType(DictionaryAttr attributes, Type type) {
  if (attributes)
    if (auto given = attributes.getAs<TypeAttr>(DistDialect::kGlobalType))
      return cast<RankedTensorType>(given.getValue());
  return cast<RankedTensorType>(type);
}

namespace {
/// An argument or result of the program in one of the functions.
struct Port {
  func::FuncOp function;
  unsigned index = 0;
};

struct CodegenEmitRt : codegen::impl::CodegenEmitRtBase<CodegenEmitRt> {
  using CodegenEmitRtBase::CodegenEmitRtBase;

  void runOnOperation() override {
    SmallVector<func::FuncOp> functions;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (dist::isLocalView(function))
        functions.push_back(function);
    if (failed(chooseProgram(functions)))
      return signalPassFailure();
    if (functions.empty())
      return;
    for (func::FuncOp function : functions)
      if (!llvm::hasSingleElement(function.getBody())) {
        function.emitError() << "a function of the local view must have one block";
        return signalPassFailure();
      }
    if (failed(emitProgram(functions)))
      return signalPassFailure();
    for (func::FuncOp function : functions)
      function.erase();
  }

  /// The global function of a local one.
  static StringRef programOf(func::FuncOp function) {
    auto name = function->getAttrOfType<StringAttr>(DistDialect::kPartOf);
    return name ? name.getValue() : function.getName();
  }

  /// Keeps the functions of one program: the requested one, else the only one.
  LogicalResult chooseProgram(SmallVectorImpl<func::FuncOp> &functions) {
    SmallVector<StringRef> names;
    for (func::FuncOp function : functions)
      if (!llvm::is_contained(names, programOf(function)))
        names.push_back(programOf(function));
    if (program.empty() ? names.size() <= 1 : names.size() == 1 && names.front() == program)
      return success();
    if (!llvm::is_contained(names, program)) {
      InFlightDiagnostic error = getOperation().emitError();
      if (program.empty())
        error << "a module of steps must be one program, this one has " << names.size();
      else
        error << "there is no program '" << program << "'";
      return error << "; choose with codegen-emit-rt{function=…}: " << llvm::join(names, ", ");
    }
    llvm::erase_if(functions, [&](func::FuncOp function) {
      if (programOf(function) == program)
        return false;
      function.erase();
      return true;
    });
    return success();
  }

  LogicalResult emitProgram(SmallVectorImpl<func::FuncOp> &functions) {
    OpBuilder builder(functions.front());
    auto name = functions.front()->getAttrOfType<StringAttr>(DistDialect::kPartOf);
    auto program =
        rt::ProgramOp::create(builder, functions.front().getLoc(),
                              name ? name.getValue() : functions.front().getName(), IntegerAttr());
    builder.setInsertionPointToEnd(&program.getBody().emplaceBlock());
    if (failed(emitPorts(functions, builder)))
      return failure();
    for (func::FuncOp function : functions) {
      auto part = rt::PartOp::create(
          builder, function.getLoc(), builder.getStringAttr(function.getName()),
          meshOf(function, builder), builder.getI64IntegerAttr(0), IntegerAttr());
      if (failed(PartEmitter(function, part, reuse).emit()))
        return failure();
    }
    program.setPeakBytes(program.sumArenas());
    return success();
  }

  /// Declares the program's arguments and results, each once.
  LogicalResult emitPorts(SmallVectorImpl<func::FuncOp> &functions, OpBuilder &builder) {
    SmallVector<Port> arguments, results;
    auto add = [](SmallVector<Port> &ports, int64_t original, Port port) {
      if (original >= static_cast<int64_t>(ports.size()))
        ports.resize(original + 1);
      if (!ports[original].function)
        ports[original] = port;
    };
    for (func::FuncOp function : functions) {
      for (unsigned index = 0; index < function.getNumArguments(); ++index)
        add(arguments, originalArgument(function, index), {function, index});
      for (unsigned index = 0; index < function.getNumResults(); ++index)
        add(results, originalResult(function, index), {function, index});
    }
    for (auto [index, port] : llvm::enumerate(arguments)) {
      func::FuncOp function = port.function;
      if (!function)
        return functions.front().emitError() << "no function has argument " << index;
      DenseI64ArrayAttr range;
      if (auto given = function.getArgAttrOfType<ArrayAttr>(port.index, DistDialect::kRange))
        range = builder.getDenseI64ArrayAttr(llvm::map_to_vector(
            given, [](Attribute bound) { return cast<IntegerAttr>(bound).getInt(); }));
      rt::ArgumentOp::create(
          builder, function.getLoc(), argumentNameOf(port, index),
          globalType(function.getArgAttrDict(port.index), function.getArgumentTypes()[port.index]),
          range);
    }
    for (auto [index, port] : llvm::enumerate(results)) {
      func::FuncOp function = port.function;
      if (!function)
        return functions.front().emitError() << "no function has result " << index;
      auto feeds = function.getResultAttrOfType<IntegerAttr>(port.index, DistDialect::kFeeds);
      rt::ResultOp::create(
          builder, function.getLoc(), resultNameOf(port, index),
          globalType(function.getResultAttrDict(port.index), function.getResultTypes()[port.index]),
          feeds ? builder.getI64IntegerAttr(feeds.getInt()) : IntegerAttr());
    }
    return success();
  }

  /// `dist.name`, else argK by its index in the program, not in the function.
  static std::string argumentNameOf(Port port, unsigned index) {
    if (port.function.getArgAttr(port.index, DistDialect::kName))
      return dist::argumentName(port.function, port.index);
    return "arg" + std::to_string(index);
  }
  static std::string resultNameOf(Port port, unsigned index) {
    if (port.function.getResultAttr(port.index, DistDialect::kName))
      return dist::resultName(port.function, port.index);
    return "result" + std::to_string(index);
  }
};
} // namespace

void codegen::buildCodegenPipeline(OpPassManager &manager, const CodegenPipelineOptions &options) {
  CodegenPrepareOptions prepare;
  prepare.parallel = options.gpu;
  manager.addNestedPass<func::FuncOp>(createCodegenFormUpdates());
  manager.addNestedPass<func::FuncOp>(createCodegenPrepare(prepare));
  CodegenFormPhasesOptions phases;
  CodegenFormContractionsOptions contractions;
  phases.narrow = contractions.narrow = options.gpu;
  manager.addNestedPass<func::FuncOp>(createCodegenFormPhases(phases));
  manager.addNestedPass<func::FuncOp>(createCodegenFormGemms());
  if (options.gpu)
    manager.addNestedPass<func::FuncOp>(createCodegenFormEpilogues());
  manager.addNestedPass<func::FuncOp>(createCodegenFormContractions(contractions));
  CodegenFuseOptions fuse;
  fuse.sums = fuse.contractions = options.gpu;
  // Smaller values stay in a cache between two kernels, and a CPU takes longer for exp than for a
  // read.
  fuse.recompute = options.gpu ? 4 << 20 : 1 << 20;
  fuse.recomputedFunctions = options.gpu ? 4 : 0;
  manager.addNestedPass<func::FuncOp>(createCodegenFuse(fuse));
  manager.addPass(createCodegenOutlineKernels());
  if (!options.gpu)
    manager.addPass(createCodegenJoinKernels());
  manager.addPass(createCodegenEmitRt());
}
