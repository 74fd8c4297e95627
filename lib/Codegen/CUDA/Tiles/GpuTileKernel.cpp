//===- GpuTileKernel.cpp - Build kernels whose launches use tiles ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuTileKernel.h"
#include "../Groups/GpuAccess.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace tessera::codegen {

static constexpr int64_t kAlignment = 256; ///< of a workspace

TileKernel::TileKernel(func::FuncOp kernel, ModuleOp launches, StringRef symbol,
                       ArrayRef<bool> mayAlias, runtime::GpuKernel &result, GpuKernelInfo &info)
    : launches(launches), symbol(symbol), mayAlias(mayAlias), result(result), info(info) {
  SmallVector<Type> types;
  for (Type type : kernel.getArgumentTypes()) {
    auto tensor = cast<RankedTensorType>(type);
    types.push_back(MemRefType::get(tensor.getShape(), tensor.getElementType()));
    info.argumentBytes += tensor.getNumElements() * bytesOf(tensor.getElementType());
  }
  OpBuilder b(kernel.getContext());
  buffers = func::FuncOp::create(kernel.getLoc(), "buffers", b.getFunctionType(types, {}));
  buffers->addEntryBlock();
}

SmallVector<Value> TileKernel::roots(ArrayRef<unsigned> arguments) {
  return llvm::map_to_vector(arguments, [&](unsigned number) { return root(number); });
}

Value TileKernel::workspace(Type element, int64_t elements, int64_t offset) {
  unsigned at = buffers->getNumArguments();
  (void)buffers->insertArgument(at, MemRefType::get({elements}, element), {}, buffers->getLoc());
  int64_t end = llvm::alignTo(offset + elements * bytesOf(element), kAlignment);
  result.workspaceBytes = std::max(result.workspaceBytes, end);
  offsets[buffers->getArgument(at)] = offset;
  return buffers->getArgument(at);
}

size_t TileKernel::launch(Location loc, GpuScheme scheme,
                          function_ref<GpuShape(GpuLaunchBuilder &, GpuLaunchInfo &)> emit) {
  std::string name = (symbol + "_" + Twine(result.launches.size())).str();
  GpuLaunchBuilder builder(launches, name, loc);
  GpuLaunchInfo launchInfo;
  launchInfo.scheme = scheme;
  launchInfo.tf32 = precision == runtime::GpuPrecision::high;
  GpuShape shape = emit(builder, launchInfo);
  builder.finish(shape.threads, shape.resident);
  runtime::GpuLaunch launch;
  launch.symbol = name;
  launch.precision = precision;
  launch.grid = {shape.blocks, 1, 1};
  launch.block = {shape.threads, 1, 1};
  launch.sharedBytes = builder.sharedBytes;
  OpBuilder b(launches.getContext());
  SmallVector<Value> &roots = rootsOf.emplace_back();
  for (auto [place, buffer] : llvm::enumerate(builder.buffers)) {
    auto type = cast<MemRefType>(buffer.root.getType());
    unsigned number = cast<BlockArgument>(buffer.root).getArgNumber();
    bool isWorkspace = number >= mayAlias.size();
    runtime::GpuArgument argument;
    argument.slot = isWorkspace ? -1 : static_cast<int64_t>(number);
    argument.offset = isWorkspace ? offsets.lookup(buffer.root) : 0;
    roots.push_back(buffer.root);
    argument.bytes = type.getNumElements() * bytesOf(type.getElementType());
    argument.writes = buffer.written;
    if (isWorkspace || !mayAlias[number])
      builder.function.setArgAttr(place, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
    builder.function.setArgAttr(place, LLVM::LLVMDialect::getAlignAttrName(),
                                b.getI64IntegerAttr(64));
    launch.arguments.push_back(argument);
  }
  result.launches.push_back(std::move(launch));
  info.launches.push_back(launchInfo);
  return result.launches.size() - 1;
}

void TileKernel::repeat(size_t number, int64_t blocks, ArrayRef<std::pair<Value, Value>> replaced,
                        const GpuLaunchInfo &launchInfo) {
  runtime::GpuLaunch launch = result.launches[number];
  SmallVector<Value> roots = rootsOf[number];
  launch.grid[0] = blocks;
  for (auto [root, argument] : llvm::zip_equal(roots, launch.arguments))
    for (auto [from, to] : replaced)
      if (root == from) {
        argument.offset = offsets.lookup(to);
        root = to;
        break;
      }
  rootsOf.push_back(roots);
  result.launches.push_back(std::move(launch));
  info.launches.push_back(launchInfo);
}

} // namespace tessera::codegen
