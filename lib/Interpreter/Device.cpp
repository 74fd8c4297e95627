//===- Device.cpp - One device executing one function ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Device.h"

#include "tessera/Dialect/Check/Check.h"
#include "tessera/Dialect/Dist/IR/Pipeline.h"
#include "tessera/Interpreter/Compare.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::interpreter;

static std::string nameOf(int64_t processId) {
  return processId < 0 ? std::string() : "on device " + std::to_string(processId) + ": ";
}

Device::Device(Program &program, func::FuncOp function, ArrayRef<Tensor> arguments,
               int64_t processId)
    : Evaluator(program, nameOf(processId)), function(function), processId(processId) {
  enter(function.getBody().front(), arguments);
}

Device::Status Device::run() {
  while (status == Status::running)
    step();
  return status;
}

Operation *Device::waitingAt() const {
  return status == Status::waiting ? current() : nullptr;
}

Operation *Device::collective() const {
  Operation *op = waitingAt();
  if (auto start = dyn_cast_or_null<dist::StartOp>(op))
    return start.getCollective();
  return isa_and_nonnull<dist::CollectiveOpInterface>(op) ? op : nullptr;
}

void Device::resume(ArrayRef<Tensor> values) {
  assert(status == Status::waiting && "only a waiting device is given results");
  // A started collective completes at once; its wait only returns the values.
  auto start = dyn_cast<dist::StartOp>(current());
  Operation *receiver = start ? start.getWait() : current();
  for (auto [result, value] : llvm::zip_equal(receiver->getResults(), values))
    set(result, value);
  status = Status::running;
  advance();
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void Device::enter(Block &block, ArrayRef<Tensor> arguments) {
  for (auto [argument, value] : llvm::zip_equal(block.getArguments(), arguments))
    set(argument, value);
  frames.push_back({&block, block.begin()});
}

/// By op of a block, the values of the block (op results and arguments) that it is the last to
/// read. An op also reads what its regions read.
static DenseMap<Operation *, SmallVector<Value>> findLastUses(Block &block) {
  DenseMap<Operation *, SmallVector<Value>> result;
  auto add = [&](Value value, Operation *last) {
    for (Operation *user : value.getUsers()) {
      Operation *ancestor = block.findAncestorOpInBlock(*user);
      if (ancestor && (!last || last->isBeforeInBlock(ancestor)))
        last = ancestor;
    }
    if (last)
      result[last].push_back(value);
  };
  for (BlockArgument argument : block.getArguments())
    add(argument, nullptr);
  for (Operation &op : block)
    for (Value value : op.getResults())
      add(value, &op);
  return result;
}

void Device::advance() {
  Frame &frame = frames.back();
  auto [it, isNew] = program.lastUses.try_emplace(frame.block);
  if (isNew)
    it->second = findLastUses(*frame.block);
  auto dead = it->second.find(&*frame.next);
  if (dead != it->second.end())
    for (Value value : dead->second)
      drop(value);
  ++frame.next;
}

void Device::step() {
  Operation *op = current();
  if (++program.operations > program.options.maxOperations) {
    error(op) << "is reached after " << program.options.maxOperations
              << " operations; the program does not seem to end";
    status = Status::failed;
    return;
  }
  if (op->hasTrait<OpTrait::IsTerminator>())
    return leave(op);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return enterLoop(loop);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return enter(*loop.getBeforeBody(), get(loop.getInits()));
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    Block *taken = getInt(branch.getCondition()) ? branch.thenBlock() : branch.elseBlock();
    return taken ? enter(*taken, {}) : advance();
  }
  if (auto region = dyn_cast<scf::ExecuteRegionOp>(op); region && region.getRegion().hasOneBlock())
    return enter(region.getRegion().front(), {});
  if (auto checkpoint = dyn_cast<dist::CheckpointOp>(op))
    return enter(checkpoint.getBody().front(), {});
  if (auto call = dyn_cast<func::CallOp>(op)) {
    if (failed(enterCall(call)))
      status = Status::failed;
    return;
  }

  Outcome outcome = Outcome::unknown;
  for (auto execute : {executeElementwise, executeLinalg, executeTensor, executeExt})
    if (outcome == Outcome::unknown)
      outcome = execute(*this, op);
  if (outcome == Outcome::unknown)
    outcome = executeHere(op);
  if (auto aggregate = dyn_cast<linalg::AggregatedOpInterface>(op);
      aggregate && outcome == Outcome::unknown) {
    if (failed(enterDecomposed(aggregate)))
      status = Status::failed;
    return;
  }
  if (outcome == Outcome::unknown)
    error(op) << "is not known to the interpreter";
  if (outcome != Outcome::done)
    status = Status::failed;
  else if (status == Status::running)
    advance();
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

void Device::enterLoop(scf::ForOp loop) {
  int64_t lower = getInt(loop.getLowerBound()), upper = getInt(loop.getUpperBound());
  int64_t step = getInt(loop.getStep());
  if (step <= 0) {
    error(loop) << "has step " << step << "; steps are positive";
    status = Status::failed;
    return;
  }
  SmallVector<Tensor> arguments = get(loop.getInitArgs());
  if (lower >= upper) {
    for (auto [result, value] : llvm::zip_equal(loop.getResults(), arguments))
      set(result, value);
    return advance();
  }
  arguments.insert(arguments.begin(),
                   Tensor::scalar(loop.getInductionVar().getType(), Scalar::ofInt(lower)));
  enter(*loop.getBody(), arguments);
  frames.back().induction = lower;
  frames.back().upper = upper;
  frames.back().step = step;
}

void Device::leaveLoop(scf::ForOp loop, ArrayRef<Tensor> yielded) {
  Frame &frame = frames.back();
  bool overflows = __builtin_add_overflow(frame.induction, frame.step, &frame.induction);
  if (overflows || frame.induction >= frame.upper)
    return popFrame(yielded);
  set(loop.getInductionVar(),
      Tensor::scalar(loop.getInductionVar().getType(), Scalar::ofInt(frame.induction)));
  for (auto [argument, value] : llvm::zip_equal(loop.getRegionIterArgs(), yielded))
    set(argument, value);
  frame.next = frame.block->begin();
}

LogicalResult Device::enterCall(func::CallOp call) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
  if (!callee || callee.isExternal())
    return error(call) << "calls '" << call.getCallee() << "', which has no body";
  for (const Frame &frame : frames)
    if (frame.block->getParentOp() == callee)
      return error(call) << "calls '" << call.getCallee() << "' recursively";
  enter(callee.getBody().front(), get(call.getOperands()));
  return success();
}

LogicalResult Device::enterDecomposed(linalg::AggregatedOpInterface op) {
  OwningOpRef<func::FuncOp> &body = program.decomposed[op];
  if (!body) {
    OpBuilder b(op.getContext());
    auto type = b.getFunctionType(op->getOperandTypes(), op->getResultTypes());
    body = func::FuncOp::create(op.getLoc(), op->getName().getStringRef(), type);
    b.setInsertionPointToStart(body->addEntryBlock());
    IRMapping mapping;
    mapping.map(op->getOperands(), body->getArguments());
    auto copy = cast<linalg::AggregatedOpInterface>(b.clone(*op, mapping));
    FailureOr<SmallVector<Value>> results = copy.decomposeOperation(b);
    if (failed(results))
      return error(op) << "is not known to the interpreter, and does not decompose";
    func::ReturnOp::create(b, op.getLoc(), *results);
    copy->erase();
  }
  enter(body->getBody().front(), get(op->getOperands()));
  return success();
}

void Device::popFrame(ArrayRef<Tensor> values) {
  frames.pop_back();
  for (auto [result, value] : llvm::zip_equal(current()->getResults(), values))
    set(result, value);
  advance();
}

void Device::leave(Operation *terminator) {
  SmallVector<Tensor> values = get(terminator->getOperands());
  Operation *parent = terminator->getParentOp();
  if (isa<func::ReturnOp>(terminator)) {
    if (frames.size() > 1)
      return popFrame(values);
    results = std::move(values);
    status = Status::finished;
    return;
  }
  if (auto loop = dyn_cast<scf::ForOp>(parent))
    return leaveLoop(loop, values);
  if (auto loop = dyn_cast<scf::WhileOp>(parent)) {
    ArrayRef<Tensor> carried = values;
    Block *next = loop.getBeforeBody();
    if (isa<scf::ConditionOp>(terminator)) {
      carried = carried.drop_front();
      if (!values.front().item().i)
        return popFrame(carried);
      next = loop.getAfterBody();
    }
    frames.pop_back();
    return enter(*next, carried);
  }
  if (isa<scf::YieldOp>(terminator) && isa<scf::IfOp, scf::ExecuteRegionOp>(parent))
    return popFrame(values);
  if (isa<dist::CheckpointOp>(parent))
    return popFrame(values);
  error(terminator) << "is not known to the interpreter";
  status = Status::failed;
}

//===----------------------------------------------------------------------===//
// dist and check
//===----------------------------------------------------------------------===//

Outcome Device::executeHere(Operation *op) {
  if (isa<check::ExpectCloseOp, check::ExpectEqOp>(op))
    return executeCheck(op);
  if (isa<dist::DistDialect>(op->getDialect()))
    return executeDist(op);
  return Outcome::unknown;
}

Outcome Device::executeCheck(Operation *op) {
  const Tensor &actual = get(op->getOperand(0)), &expected = get(op->getOperand(1));
  if (actual.shape() != expected.shape()) {
    error(op) << "compares " << actual.tensorType() << " with " << expected.tensorType();
    return Outcome::failed;
  }
  if (isa<check::ExpectCloseOp>(op)) {
    Comparison comparison = compare(actual, expected);
    if (comparison.ok)
      return Outcome::done;
    error(op) << "fails: " << describe(comparison, actual, expected);
    return Outcome::failed;
  }
  int64_t position = firstDifference(actual, expected);
  if (position < 0)
    return Outcome::done;
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os, Tensor::scalar(actual.getElementType(), actual.load(position)));
  os << ", expected ";
  print(os, Tensor::scalar(expected.getElementType(), expected.load(position)));
  error(op) << "fails: element " << indexText(actual, position) << " is " << text;
  return Outcome::failed;
}

Outcome Device::executeDist(Operation *op) {
  if (isa<dist::ShardTensorOp, dist::ReshardOp, dist::StopGradientOp>(op)) {
    set(op->getResult(0), get(op->getOperand(0)));
    return Outcome::done;
  }
  if (processId < 0) {
    error(op) << "belongs to the local view; this is the global view on one device";
    return Outcome::failed;
  }
  if (auto index = dyn_cast<dist::AxisIndexOp>(op)) {
    const sharding::Mesh &mesh = program.meshes.get(index.getMeshAttr());
    auto axes = dist::resolveAxes(index.getAxes(), mesh, [&]() { return error(op); });
    int64_t position = mesh.positionOf(processId);
    if (failed(axes))
      return Outcome::failed;
    if (position < 0) {
      error(op) << "is executed by a device outside mesh '" << mesh.name << "'";
      return Outcome::failed;
    }
    set(index.getResult(),
        Tensor::index(op->getContext(),
                      sharding::linearIndex(mesh, *axes, mesh.coordinate(position))));
    return Outcome::done;
  }
  if (isa<dist::WaitOp, dist::SegmentOp>(op))
    return Outcome::done; // a wait: see `resume`
  if (!isa<dist::CollectiveOpInterface, dist::StartOp, dist::SendOp, dist::RecvOp>(op))
    return Outcome::unknown;
  status = Status::waiting;
  return Outcome::done;
}
