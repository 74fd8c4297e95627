//===- JoinKernels.cpp - Kernels on blocks of a product's result ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelBlocks.h"
#include "StepOps.h"
#include "tessera/Codegen/Gemm.h"
#include "tessera/Codegen/Kernels/Kernel.h"
#include "tessera/Codegen/Passes.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Rt/IR/Rt.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace tessera::codegen {
#define GEN_PASS_DEF_CODEGENJOINKERNELS
#include "tessera/Codegen/Passes.h.inc"
} // namespace tessera::codegen

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

/// The value whose bytes `value` has, through reshapes and slices.
static Value rootOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (classify(op) != StepKind::view)
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// The ops that access the bytes of a root, without views.
static void collectReaders(Value value, llvm::SetVector<Operation *> &readers) {
  for (Operation *user : value.getUsers())
    if (classify(user) == StepKind::view)
      collectReaders(user->getResult(0), readers);
    else
      readers.insert(user);
}

namespace {

/// One product and the kernel that may join it.
class Join {
public:
  Join(Operation *product, SymbolTable &symbols) : product(product), symbols(symbols) {}
  /// Whether a kernel follows that may run by blocks. Changes nothing.
  bool find(int64_t bytes);
  /// Replaces the call; `known` has the kernels of blocks that exist, by text.
  void rewrite(llvm::StringMap<func::FuncOp> &known);

private:
  bool findCall();
  bool mayMove();
  bool keepsMemory(ArrayRef<unsigned> arguments);
  bool pollutesCache(ArrayRef<unsigned> arguments);
  bool movesWith(Value operand);

  Operation *product;
  SymbolTable &symbols;
  func::CallOp call;
  func::FuncOp kernel;
  std::optional<KernelBlocks> parts;
  int64_t blocks = 1;
  llvm::SetVector<Operation *> moved; ///< views and empty tensors that move up with the call
};

} // namespace

/// The ancestor of `op` in a block, or null.
static Operation *inBlock(Block *block, Operation *op) {
  return block->findAncestorOpInBlock(*op);
}

bool Join::findCall() {
  llvm::SetVector<Operation *> readers;
  collectReaders(product->getResult(0), readers);
  Operation *first = nullptr;
  for (Operation *reader : readers)
    if (Operation *here = inBlock(product->getBlock(), reader);
        here && (!first || here->isBeforeInBlock(first)))
      first = here;
  call = dyn_cast_or_null<func::CallOp>(first);
  if (!call)
    return false;
  kernel = symbols.lookup<func::FuncOp>(call.getCallee());
  return kernel && rt::isKernel(kernel);
}

/// Whether the operand exists at the product, or is a view that may move there.
bool Join::movesWith(Value operand) {
  Operation *op = operand.getDefiningOp();
  if (!op || op == product || op->getBlock() != product->getBlock() || op->isBeforeInBlock(product))
    return true;
  StepKind kind = classify(op);
  if (kind != StepKind::view && kind != StepKind::free && kind != StepKind::scalar)
    return false;
  if (!llvm::all_of(op->getOperands(), [&](Value each) { return movesWith(each); }))
    return false;
  moved.insert(op);
  return true;
}

bool Join::mayMove() {
  for (Operation *op = product->getNextNode(); op != call; op = op->getNextNode()) {
    StepKind kind = classify(op);
    if (kind == StepKind::other && !isa<func::CallOp, rt::CallBlocksOp>(op))
      return false;
  }
  for (Value operand : call.getOperands()) {
    if (!movesWith(operand))
      return false;
    Value root = rootOf(operand);
    if (root == product->getResult(0) || root.getDefiningOp<tensor::EmptyOp>())
      continue;
    // What the kernel overwrites must have been read, or it would need another buffer.
    llvm::SetVector<Operation *> readers;
    collectReaders(root, readers);
    for (Operation *reader : readers)
      if (Operation *here = inBlock(product->getBlock(), reader);
          here && here != call && product->isBeforeInBlock(here) && here->isBeforeInBlock(call))
        return false;
    // The product reads it while blocks are written.
    if (llvm::is_contained(readers, product) &&
        llvm::any_of(call.getOperands().take_back(call.getNumResults()),
                     [&](Value init) { return rootOf(init) == root; }))
      return false;
  }
  return true;
}

/// The operands of the product live until the kernel is done. Whether that takes little memory:
/// they live on anyway, or results are small, or replace the product's (`arguments`) or their init.
bool Join::keepsMemory(ArrayRef<unsigned> arguments) {
  auto bytesOf = [](Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    return type.getNumElements() * dist::bytesPerElement(type.getElementType());
  };
  bool frees = llvm::any_of(product->getOperands(), [&](Value operand) {
    Value root = rootOf(operand);
    if (!root.getDefiningOp() || root.getDefiningOp()->getBlock() != product->getBlock() ||
        classify(root.getDefiningOp()) == StepKind::free)
      return false;
    llvm::SetVector<Operation *> readers;
    collectReaders(root, readers);
    return llvm::none_of(readers, [&](Operation *reader) {
      Operation *here = inBlock(product->getBlock(), reader);
      return here && product->isBeforeInBlock(here);
    });
  });
  if (!frees)
    return true;
  constexpr int64_t kSmall = 16;
  unsigned reads = call.getNumOperands() - call.getNumResults();
  return llvm::all_of(call.getResults(), [&](OpResult result) {
    unsigned output = reads + result.getResultNumber();
    if (bytesOf(result) * kSmall <= bytesOf(product->getResult(0)) ||
        !call.getOperand(output).getDefiningOp<tensor::EmptyOp>())
      return true;
    // A value that the next iteration or step reads has the buffer of the old one.
    llvm::SetVector<Operation *> readers;
    collectReaders(result, readers);
    bool isCarried = llvm::any_of(
        readers, [](Operation *reader) { return reader->hasTrait<OpTrait::IsTerminator>(); });
    return llvm::any_of(llvm::seq(reads), [&](unsigned input) {
      bool isOwn = isCarried ? isa<BlockArgument>(rootOf(call.getOperand(input)))
                             : llvm::is_contained(arguments, input);
      return isOwn && canRunInPlace(kernel, input, output);
    });
  });
}

/// Directly behind the product its result is still in the last cache. Other tensors as large, which
/// the kernel reads between the pieces, would only replace the product's operands in the first
/// ones.
bool Join::pollutesCache(ArrayRef<unsigned> arguments) {
  for (Operation *op = product->getNextNode(); op != call; op = op->getNextNode())
    if (!llvm::is_contained({StepKind::view, StepKind::free, StepKind::scalar}, classify(op)))
      return false;
  SmallVector<bool> cut = parts->cut();
  int64_t elements = cast<RankedTensorType>(product->getResult(0).getType()).getNumElements();
  unsigned reads = call.getNumOperands() - call.getNumResults();
  return llvm::any_of(llvm::seq(reads), [&](unsigned input) {
    auto type = cast<RankedTensorType>(call.getOperand(input).getType());
    return cut[input] && !llvm::is_contained(arguments, input) &&
           2 * type.getNumElements() > elements;
  });
}

bool Join::find(int64_t bytes) {
  if (isa<linalg::LinalgOp, rt::ProductOp>(product) && matchGemm(product)->starts.size() != 1)
    return false;
  if (!findCall() || !mayMove())
    return false;
  SmallVector<unsigned> arguments;
  for (auto [index, operand] : llvm::enumerate(call.getOperands()))
    if (rootOf(operand) == product->getResult(0)) {
      if (cast<RankedTensorType>(operand.getType()).getNumElements() !=
          cast<RankedTensorType>(product->getResult(0).getType()).getNumElements())
        return false;
      arguments.push_back(index);
    }
  if (!keepsMemory(arguments))
    return false;
  parts.emplace(kernel);
  if (!parts->analyse(arguments) || pollutesCache(arguments))
    return false;
  blocks = parts->choose(arguments.front(), bytes);
  return blocks > 1;
}

void Join::rewrite(llvm::StringMap<func::FuncOp> &known) {
  func::FuncOp made = parts->build(blocks);
  std::string text;
  llvm::raw_string_ostream os(text);
  made->print(os, OpPrintingFlags().useLocalScope().printGenericOpForm());
  auto [it, isNew] = known.try_emplace(text, made);
  if (isNew) {
    made.setName((kernel.getName() + "_block").str());
    symbols.insert(made, Block::iterator(kernel->getNextNode()));
  } else {
    made->erase();
  }
  Operation *last = product;
  for (Operation *op : moved) {
    op->moveAfter(last);
    last = op;
  }
  OpBuilder builder(call);
  builder.setInsertionPointAfter(last);
  auto blocked = rt::CallBlocksOp::create(builder, call.getLoc(), call.getResultTypes(),
                                          FlatSymbolRefAttr::get(it->second.getSymNameAttr()),
                                          call.getOperands(), builder.getI64IntegerAttr(blocks),
                                          builder.getDenseBoolArrayAttr(parts->cut()));
  call.replaceAllUsesWith(blocked.getResults());
  call.erase();
}

namespace {
struct CodegenJoinKernels : codegen::impl::CodegenJoinKernelsBase<CodegenJoinKernels> {
  using CodegenJoinKernelsBase::CodegenJoinKernelsBase;
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    llvm::StringMap<func::FuncOp> known;
    SmallVector<Operation *> products;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (dist::isLocalView(function))
        function.walk([&](Operation *op) {
          if (op->getNumResults() == 1 && classify(op) == StepKind::gemm)
            products.push_back(op);
        });
    for (Operation *product : products)
      if (Join join(product, symbols); join.find(bytes))
        join.rewrite(known);
    eraseUncalled();
  }

  /// Kernels that only blocks of theirs replace.
  void eraseUncalled() {
    llvm::StringSet<> called;
    getOperation().walk([&](Operation *op) {
      if (auto call = dyn_cast<func::CallOp>(op))
        called.insert(call.getCallee());
      else if (auto call = dyn_cast<rt::CallBlocksOp>(op))
        called.insert(call.getKernel());
    });
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (rt::isKernel(function) && !called.contains(function.getName()))
        function.erase();
  }
};
} // namespace
