//===- GlobalRun.cpp - The global view on one device, and signatures ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Device.h"
#include "tessera/Interpreter/Interpreter.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::interpreter;

/// The element type and shape of an argument type as a Tensor; empty if it is not representable.
static std::optional<RankedTensorType> asTensor(Type type) {
  if (!elementOf(type))
    return std::nullopt;
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor;
  return isa<ShapedType>(type) ? std::nullopt : std::optional(RankedTensorType::get({}, type));
}

FailureOr<SmallVector<Tensor>>
interpreter::runGlobal(func::FuncOp function, ArrayRef<Tensor> inputs, const Options &options) {
  if (function.isExternal())
    return mlir::emitError(function.getLoc()) << "'" << function.getName() << "' has no body";
  if (inputs.size() != function.getNumArguments())
    return mlir::emitError(function.getLoc())
           << "'" << function.getName() << "' takes " << function.getNumArguments()
           << " arguments, not " << inputs.size();
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes())) {
    std::optional<RankedTensorType> wanted = asTensor(type);
    if (!wanted || failed(verifyCompatibleShape(*wanted, inputs[index].tensorType())) ||
        wanted->getElementType() != inputs[index].getElementType())
      return mlir::emitError(function.getLoc())
             << "argument " << index << " of '" << function.getName() << "' is " << type
             << ", its value " << inputs[index].tensorType();
  }
  Program program(function->getParentOfType<ModuleOp>(), options);
  Device device(program, function, inputs);
  if (device.run() != Device::Status::finished)
    return failure();
  return SmallVector<Tensor>(device.getResults());
}

bool interpreter::hasLocalView(ModuleOp module) {
  return llvm::any_of(module.getOps<func::FuncOp>(),
                      [](func::FuncOp function) { return dist::isLocalView(function); });
}

/// The program to which a local function belongs.
static StringRef programOf(func::FuncOp function) {
  auto attribute = function->getAttrOfType<StringAttr>(dist::DistDialect::kPartOf);
  return attribute ? attribute.getValue() : function.getName();
}

SmallVector<std::string> interpreter::runnableFunctions(ModuleOp module) {
  bool local = hasLocalView(module);
  SmallVector<std::string> names;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal() || dist::isLocalView(function) != local ||
        (!local && !function.isPublic()))
      continue;
    std::string name = programOf(function).str();
    if (!llvm::is_contained(names, name))
      names.push_back(name);
  }
  return names;
}

FailureOr<SmallVector<Argument>> interpreter::globalArguments(ModuleOp module, StringRef name) {
  SmallVector<Argument> result;
  bool found = false;
  for (auto function : module.getOps<func::FuncOp>()) {
    bool local = dist::isLocalView(function);
    if (function.isExternal() || (local ? programOf(function) : function.getName()) != name)
      continue;
    found = true;
    for (BlockArgument value : function.getArguments()) {
      unsigned number = value.getArgNumber();
      unsigned index = number;
      if (auto original =
              function.getArgAttrOfType<IntegerAttr>(number, dist::DistDialect::kArgument))
        index = original.getInt();
      Argument argument{dist::argumentName(function, number), value.getType()};
      if (isa<RankedTensorType>(argument.type))
        argument.type = dist::getGlobalType(value);
      std::optional<RankedTensorType> tensor = asTensor(argument.type);
      if (!tensor || !tensor->hasStaticShape())
        return mlir::emitError(function.getLoc())
               << "argument " << number << " of '" << function.getName() << "' is " << argument.type
               << "; the interpreter supports scalars and tensors of static shape";
      if (auto range = function.getArgAttrOfType<ArrayAttr>(number, dist::DistDialect::kRange)) {
        argument.low = cast<IntegerAttr>(range[0]).getInt();
        argument.high = cast<IntegerAttr>(range[1]).getInt();
      }
      if (index >= result.size())
        result.resize(index + 1);
      result[index] = std::move(argument);
    }
  }
  if (!found)
    return mlir::emitError(module.getLoc()) << "no function '" << name << "'";
  // An argument that no part of the program reads is in no local function: any value is correct.
  for (Argument &argument : result)
    if (!argument.type)
      argument.type = IndexType::get(module.getContext());
  return result;
}
