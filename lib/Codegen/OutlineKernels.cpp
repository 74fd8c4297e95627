//===- OutlineKernels.cpp - Outline groups as shared kernels --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Codegen/Kernels/DeadInit.h"
#include "tessera/Codegen/Passes.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"

#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/StringMap.h"

namespace tessera::codegen {
#define GEN_PASS_DEF_CODEGENOUTLINEKERNELS
#include "tessera/Codegen/Passes.h.inc"
} // namespace tessera::codegen

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

namespace {

/// The buffer of a group's result: the init at the start of the chain of ops that compute it in
/// place.
struct Destination {
  OpOperand *init = nullptr; ///< replaced by the kernel's destination; null: the result is copied
  Value carried;             ///< the destination's value on entry, from outside; null: undefined
};

/// Outlines one group.
class Outliner {
public:
  explicit Outliner(rt::GroupOp group) : group(group) {}

  /// The kernel, outside of any module.
  func::FuncOp outline();
  /// Replaces the group by a call of `kernel`.
  void call(func::FuncOp kernel);

private:
  bool isInside(Value value) { return group.getBody().isAncestor(value.getParentRegion()); }
  Destination findDestination(Value result);
  Value copyInto(OpBuilder &builder, Value result, Value destination);

  rt::GroupOp group;
  SmallVector<Value> reads;
  SmallVector<Destination> destinations;
};

} // namespace

/// The operand whose buffer the op overwrites with `result`; null if there is none.
static OpOperand *tiedInit(OpResult result) {
  Operation *op = result.getOwner();
  if (auto destinationStyle = dyn_cast<DestinationStyleOpInterface>(op))
    return destinationStyle.getTiedOpOperand(result);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return loop.getTiedLoopInit(loop.getTiedLoopRegionIterArg(result));
  return nullptr;
}

static bool readsInit(OpOperand &init) {
  auto op = dyn_cast<linalg::LinalgOp>(init.getOwner());
  return !op || !isInitDead(op, init);
}

Destination Outliner::findDestination(Value result) {
  OpOperand *init = nullptr;
  for (Value value = result; isInside(value);) {
    auto made = dyn_cast<OpResult>(value);
    if (!made)
      return {};
    if (made.getDefiningOp<tensor::EmptyOp>())
      return {init, Value()};
    init = tiedInit(made);
    if (!init)
      return {};
    if (!readsInit(*init))
      return {init, Value()};
    value = init->get();
    if (!isInside(value))
      return {init, value};
  }
  return {};
}

Value Outliner::copyInto(OpBuilder &builder, Value result, Value destination) {
  auto elements = result.getDefiningOp<tensor::FromElementsOp>();
  if (elements && elements.getElements().size() == 1) {
    SmallVector<Value> zeros(elements.getType().getRank());
    for (Value &zero : zeros)
      zero = arith::ConstantIndexOp::create(builder, result.getLoc(), 0);
    return tensor::InsertOp::create(builder, result.getLoc(), elements.getElements()[0],
                                    destination, zeros);
  }
  return linalg::CopyOp::create(builder, result.getLoc(), result, destination).getResult(0);
}

func::FuncOp Outliner::outline() {
  Operation *yield = group.getBody().front().getTerminator();
  llvm::SmallPtrSet<OpOperand *, 4> claimed;
  for (Value result : yield->getOperands()) {
    Destination destination = findDestination(result);
    // Two results of one chain cannot both have its buffer.
    if (destination.init && !claimed.insert(destination.init).second)
      destination = {};
    destinations.push_back(destination);
  }
  SetVector<Value> captured;
  group.getBody().walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      if (!isInside(operand.get()) && !claimed.contains(&operand))
        captured.insert(operand.get());
  });
  reads = captured.takeVector();

  SmallVector<Type> inputs = llvm::to_vector(TypeRange(ValueRange(reads)));
  llvm::append_range(inputs, group.getResultTypes());
  OpBuilder builder(group.getContext());
  auto kernel = func::FuncOp::create(group.getLoc(), "kernel",
                                     builder.getFunctionType(inputs, group.getResultTypes()));
  kernel.setPrivate();
  kernel->setAttr(rt::RtDialect::kKernelReads, builder.getI64IntegerAttr(reads.size()));
  Block *body = kernel.addEntryBlock();
  IRMapping mapping;
  mapping.map(reads, body->getArguments().take_front(reads.size()));
  for (auto [destination, argument] :
       llvm::zip_equal(destinations, body->getArguments().drop_front(reads.size())))
    if (destination.init)
      destination.init->set(argument);
  builder.setInsertionPointToEnd(body);
  for (Operation &op : group.getBody().front().without_terminator())
    builder.clone(op, mapping);
  SmallVector<Value> results;
  for (auto [result, destination, argument] : llvm::zip_equal(
           yield->getOperands(), destinations, body->getArguments().drop_front(reads.size()))) {
    Value inside = mapping.lookupOrDefault(result);
    results.push_back(destination.init ? inside : copyInto(builder, inside, argument));
  }
  func::ReturnOp::create(builder, group.getLoc(), results);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*body)))
    if (isOpTriviallyDead(&op))
      op.erase();
  return kernel;
}

void Outliner::call(func::FuncOp kernel) {
  OpBuilder builder(group);
  SmallVector<Value> operands = reads;
  for (auto [destination, type] : llvm::zip_equal(destinations, group.getResultTypes())) {
    auto tensor = cast<RankedTensorType>(type);
    operands.push_back(destination.carried ? destination.carried
                                           : Value(tensor::EmptyOp::create(
                                                 builder, group.getLoc(), tensor.getShape(),
                                                 tensor.getElementType())));
  }
  group.replaceAllUsesWith(func::CallOp::create(builder, group.getLoc(), kernel, operands));
  group.erase();
}

namespace {
struct CodegenOutlineKernels : codegen::impl::CodegenOutlineKernelsBase<CodegenOutlineKernels> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    llvm::StringMap<func::FuncOp> known;
    SmallVector<rt::GroupOp> groups;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (dist::isLocalView(function))
        function.walk([&](rt::GroupOp group) { groups.push_back(group); });
    for (rt::GroupOp group : groups) {
      std::string name = group.getName().str();
      Outliner outliner(group);
      func::FuncOp kernel = outliner.outline();
      // Kernels are equal if their texts without locations are.
      std::string text;
      llvm::raw_string_ostream os(text);
      kernel->print(os, OpPrintingFlags().useLocalScope().printGenericOpForm());
      auto [it, isNew] = known.try_emplace(text, kernel);
      if (isNew) {
        kernel.setName("k" + std::to_string(known.size() - 1) + "_" + name);
        symbols.insert(kernel);
      }
      outliner.call(it->second);
      if (!isNew)
        kernel->erase(); // the group, now gone, used its arguments
    }
  }
};
} // namespace
