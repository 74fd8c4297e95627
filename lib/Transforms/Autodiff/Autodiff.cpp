//===- Autodiff.cpp - The function of value and gradients -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionReverse.h"
#include "LoopNest.h"
#include "Reverse.h"
#include "tessera/Transforms/Elementwise.h"
#include "tessera/Transforms/HoistInvariants.h"
#include "tessera/Transforms/Inline.h"

#include "tessera/Dialect/Dist/IR/Pipeline.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Transforms/Autodiff/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace tessera::dist {
#define GEN_PASS_DEF_DISTAUTODIFF
#include "tessera/Transforms/Autodiff/Passes.h.inc"
} // namespace tessera::dist

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Erases ops with unused results, users before producers.
static void eraseUnused(func::FuncOp function) {
  SmallVector<Operation *> ops;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<linalg::LinalgOp>(op->getParentOp()))
      return;
    ops.push_back(op);
  });
  for (Operation *op : llvm::reverse(ops))
    if (isOpTriviallyDead(op))
      op->erase();
}

namespace {

/// The new function under construction.
struct Derivative {
  func::FuncOp function;
  SmallVector<unsigned> wrt, of;
  bool keepsValue, seedIsArgument;
  int64_t recomputedScores;

  LogicalResult write();

private:
  void addCotangentArguments(SmallVectorImpl<Value> &seeds);
  void setSignature(ArrayRef<Value> gradients);
};

struct DistAutodiff : dist::impl::DistAutodiffBase<DistAutodiff> {
  using DistAutodiffBase::DistAutodiffBase;

  void runOnOperation() override {
    if (failed(differentiate()))
      signalPassFailure();
  }

private:
  LogicalResult differentiate();
  FailureOr<SmallVector<unsigned>> findArguments(func::FuncOp source);
  FailureOr<SmallVector<unsigned>> findResults(func::FuncOp source);
  LogicalResult fillDeclaration(func::FuncOp declaration, func::FuncOp made);
};

} // namespace

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

/// The index with the name or number `text`, or -1.
static int64_t findNamed(StringRef text, unsigned count,
                         llvm::function_ref<std::string(unsigned)> nameOf) {
  for (unsigned i = 0; i < count; ++i)
    if (nameOf(i) == text)
      return i;
  unsigned number = 0;
  return !text.getAsInteger(10, number) && number < count ? static_cast<int64_t>(number) : -1;
}

FailureOr<SmallVector<unsigned>> DistAutodiff::findArguments(func::FuncOp source) {
  SmallVector<unsigned> result;
  for (const std::string &text : wrt) {
    int64_t index = findNamed(text, source.getNumArguments(),
                              [&](unsigned i) { return argumentName(source, i); });
    if (index < 0)
      return source.emitError() << "wrt '" << text << "' is not an argument of '"
                                << source.getSymName() << "'; give a dist.name or an index";
    BlockArgument argument = source.getArgument(index);
    if (!isDifferentiable(argument.getType()))
      return mlir::emitError(argument.getLoc())
             << "argument '" << text << "' of '" << source.getSymName() << "' has type "
             << argument.getType() << "; only floating-point arguments have gradients";
    if (llvm::is_contained(result, index))
      return source.emitError() << "wrt '" << text << "' is given twice";
    result.push_back(index);
  }
  if (wrt.empty())
    for (BlockArgument argument : source.getArguments())
      if (isDifferentiable(argument.getType()))
        result.push_back(argument.getArgNumber());
  if (result.empty())
    return source.emitError()
           << "'" << source.getSymName()
           << "' has no floating-point argument to differentiate with respect to";
  return result;
}

FailureOr<SmallVector<unsigned>> DistAutodiff::findResults(func::FuncOp source) {
  SmallVector<unsigned> result;
  for (const std::string &text : of) {
    int64_t index =
        findNamed(text, source.getNumResults(), [&](unsigned i) { return resultName(source, i); });
    if (index < 0)
      return source.emitError() << "of '" << text << "' is not a result of '" << source.getSymName()
                                << "'; give a dist.name or an index";
    result.push_back(index);
  }
  if (of.empty())
    for (unsigned i = 0; i < source.getNumResults(); ++i)
      if (seed == "argument" ? isDifferentiable(source.getResultTypes()[i]) : i == 0)
        result.push_back(i);
  if (result.empty())
    return source.emitError() << "'" << source.getSymName()
                              << "' has no floating-point result to differentiate";
  for (unsigned i : result) {
    Type type = source.getResultTypes()[i];
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!isDifferentiable(type))
      return source.emitError() << "result '" << resultName(source, i) << "' has type " << type
                                << "; only floating-point results are differentiated";
    if (seed == "one" && tensor && tensor.getNumElements() != 1)
      return source.emitError() << "result '" << resultName(source, i) << "' has type " << type
                                << " and no cotangent; give it one with seed=argument, or "
                                << "differentiate a scalar";
  }
  return result;
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

void Derivative::addCotangentArguments(SmallVectorImpl<Value> &seeds) {
  for (unsigned i : of) {
    unsigned number = function.getNumArguments();
    NamedAttrList attributes;
    attributes.set(DistDialect::kName,
                   StringAttr::get(function.getContext(), "d_" + resultName(function, i)));
    if (auto sharding = function.getResultAttrOfType<ShardingAttr>(i, DistDialect::kSharding))
      attributes.set(DistDialect::kSharding, sharding);
    (void)function.insertArgument(number, function.getResultTypes()[i],
                                  attributes.getDictionary(function.getContext()),
                                  function.getLoc());
    seeds.push_back(function.getArgument(number));
  }
}

void Derivative::setSignature(ArrayRef<Value> gradients) {
  Operation *ret = function.getBody().front().getTerminator();
  SmallVector<Value> values;
  SmallVector<Type> types;
  SmallVector<Attribute> attributes;
  MLIRContext *context = function.getContext();
  auto add = [&](Value value, DictionaryAttr attribute) {
    values.push_back(value);
    types.push_back(value.getType());
    attributes.push_back(attribute ? attribute : DictionaryAttr::get(context));
  };
  if (keepsValue)
    for (auto [i, value] : llvm::enumerate(ret->getOperands())) {
      // Feeds of the function do not apply to its derivative.
      NamedAttrList kept(function.getResultAttrDict(i));
      kept.erase(DistDialect::kFeeds);
      add(value, kept.getDictionary(context));
    }
  for (auto [argument, gradient] : llvm::zip_equal(wrt, gradients)) {
    NamedAttrList named;
    named.set(DistDialect::kName,
              StringAttr::get(context, "d_" + argumentName(function, argument)));
    add(gradient, named.getDictionary(context));
  }
  ret->setOperands(values);
  SmallVector<Attribute> arguments;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    arguments.push_back(function.getArgAttrDict(i) ? function.getArgAttrDict(i)
                                                   : DictionaryAttr::get(context));
  function.removeResAttrsAttr();
  function.setType(FunctionType::get(context, function.getArgumentTypes(), types));
  function.setArgAttrsAttr(ArrayAttr::get(context, arguments));
  function.setResAttrsAttr(ArrayAttr::get(context, attributes));
}

namespace {
/// Marks ops, but not those in bodies of `linalg` ops, as the backward pass of a pipeline.
struct BackwardListener : OpBuilder::Listener {
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override {
    if (!isa_and_nonnull<linalg::LinalgOp>(op->getParentOp()))
      op->setAttr(kBackward, UnitAttr::get(op->getContext()));
  }
};
} // namespace

/// Whether stages may be on different meshes.
static bool hasSeveralMeshes(ModuleOp module) {
  auto meshes = module.getOps<ProcessMeshOp>();
  return !meshes.empty() && !llvm::hasSingleElement(meshes);
}

LogicalResult Derivative::write() {
  if (failed(inlineCallsForDerivative(function)))
    return failure();
  SmallVector<Operation *> elementwise;
  function.walk([&](Operation *op) {
    if (isElementwiseOnTensors(op))
      elementwise.push_back(op);
  });
  llvm::for_each(elementwise, elementwiseToGeneric);
  hoistInvariants(function); // what a loop computes is kept for each iteration

  Operation *ret = function.getBody().front().getTerminator();
  SmallVector<Value> inputs, outputs, seeds, gradients;
  for (unsigned i : wrt)
    inputs.push_back(function.getArgument(i));
  prepareAttention(function, inputs, of, recomputedScores);
  for (unsigned i : of)
    outputs.push_back(ret->getOperand(i));
  BackwardListener listener;
  OpBuilder b(ret);
  if (hasSeveralMeshes(function->getParentOfType<ModuleOp>()))
    b.setListener(&listener);
  if (seedIsArgument) {
    addCotangentArguments(seeds);
  } else {
    for (Value output : outputs) {
      Type type = output.getType();
      TypedAttr one = b.getFloatAttr(getElementTypeOrSelf(type), 1);
      if (auto tensor = dyn_cast<RankedTensorType>(type))
        one = DenseElementsAttr::get(tensor, Attribute(one));
      seeds.push_back(arith::ConstantOp::create(b, output.getLoc(), one));
    }
  }
  {
    Activity activity(function, inputs, outputs);
    Reverse reverse(b, activity);
    for (auto [output, seed] : llvm::zip_equal(outputs, seeds))
      reverse.add(output, seed);
    if (failed(reverse.sweep(function.getBody().front())))
      return failure();
    for (Value input : inputs)
      gradients.push_back(reverse.takeOrZeros(input));
  }
  setSignature(gradients);
  dropDerivativeMarks(function);
  eraseUnused(function);
  return success();
}

/// Moves the body of the new function into a declaration, if the types are equal.
LogicalResult DistAutodiff::fillDeclaration(func::FuncOp declaration, func::FuncOp made) {
  if (declaration.getFunctionType() != made.getFunctionType())
    return declaration.emitError() << "'" << declaration.getSymName() << "' is declared as "
                                   << declaration.getFunctionType() << "; the derivative of '"
                                   << function << "' has type " << made.getFunctionType();
  made.setVisibility(declaration.getVisibility());
  made.setSymName(declaration.getSymName());
  made->moveBefore(declaration);
  declaration.erase();
  return success();
}

LogicalResult DistAutodiff::differentiate() {
  ModuleOp module = getOperation();
  auto source = module.lookupSymbol<func::FuncOp>(function);
  if (!source)
    return mlir::emitError(module.getLoc()) << "no function '" << function << "' to differentiate";
  if (source.isExternal() || !source.getBody().hasOneBlock() || isLocalView(source))
    return source.emitError()
           << "'" << function
           << "' cannot be differentiated; expected a function of the global view with one block";
  if (seed != "one" && seed != "argument")
    return mlir::emitError(module.getLoc()) << "seed '" << seed << "' is neither one nor argument";
  std::string target = name.empty() ? function + "_grad" : name;
  Operation *existing = module.lookupSymbol(target);
  auto declaration = dyn_cast_or_null<func::FuncOp>(existing);
  if (existing && !(declaration && declaration.isExternal()))
    return existing->emitError() << "'" << target
                                 << "' already exists; give the derivative another name";
  FailureOr<SmallVector<unsigned>> arguments = findArguments(source);
  FailureOr<SmallVector<unsigned>> results = findResults(source);
  if (failed(arguments) || failed(results))
    return failure();

  func::FuncOp made = source.clone();
  made.setSymName(declaration ? target + "_made" : target);
  module.insert(std::next(source->getIterator()), made);
  Derivative derivative{made, *arguments, *results, value, seed == "argument", recomputedScores};
  if (failed(derivative.write()))
    return failure();
  if (declaration && failed(fillDeclaration(declaration, made)))
    return failure();
  if (source.isPrivate() && SymbolTable::symbolKnownUseEmpty(source, module))
    source.erase();
  return success();
}
