//===- PartEmitter.cpp - Emit one local function as a part ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PartEmitter.h"

#include "StepOps.h"
#include "tessera/Codegen/Gemm.h"
#include "tessera/Codegen/Kernels/Kernel.h"
#include "tessera/Dialect/Dist/IR/Pipeline.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Rt/IR/Bounds.h"
#include "tessera/Planning/Views.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

/// Whether readers of the op's results also read its operands.
static bool isTransparent(Operation *op) {
  StepKind kind = classify(op);
  return kind == StepKind::view || kind == StepKind::scalar;
}

PartEmitter::PartEmitter(func::FuncOp function, rt::PartOp part, bool reuse)
    : function(function), part(part), reuse(reuse), lives(function, isTransparent),
      slots(part->getContext()), homes(part->getContext()), steps(part->getContext()) {
  // Separate blocks, joined at the end.
  for (OpBuilder *builder : {&slots, &homes, &steps})
    builder->setInsertionPointToEnd(&part.getBody().emplaceBlock());
}

void PartEmitter::emitCall(func::CallOp call) {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
  Slots used = placeKernel(call, kernel, llvm::SmallPtrSet<Storage *, 1>());
  rt::LaunchOp::create(steps, call.getLoc(), call.getCallee(), used.reads, used.writes,
                       /*blocks=*/1, DenseBoolArrayAttr(), /*joins=*/false);
}

Operation *PartEmitter::joinedProduct(rt::CallBlocksOp call) {
  Operation *op = call->getPrevNode();
  while (op && llvm::is_contained({StepKind::view, StepKind::free, StepKind::scalar}, classify(op)))
    op = op->getPrevNode();
  return op && classify(op) == StepKind::gemm ? op : nullptr;
}

void PartEmitter::emitCallBlocks(rt::CallBlocksOp call) {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getKernelAttr());
  int64_t time = lives.start(call);
  // The product is still under way when the first blocks are written.
  llvm::SmallPtrSet<Storage *, 4> busy;
  if (Operation *product = joinedProduct(call)) {
    Storage *result = placeOf(product->getResult(0)).storage;
    for (Value operand : product->getOperands())
      if (places.contains(operand))
        if (Storage *storage = placeOf(operand).storage; storage != result) {
          busy.insert(storage);
          if (!storage->constant)
            storage->live(lives.start(product), time);
        }
  }
  Slots used = placeKernel(call, kernel, busy);
  auto launch = rt::LaunchOp::create(steps, call.getLoc(), call.getKernel(), used.reads,
                                     used.writes, call.getBlocks(), call.getCutAttr(), false);
  // A copy to a destination may be between.
  if (joinedProduct(call) && isa_and_nonnull<rt::GemmOp, rt::ContractOp>(launch->getPrevNode()))
    launch.setJoins(true);
}

/// Assigns the results of a call of a kernel, none of them to a storage in `busy`.
PartEmitter::Slots PartEmitter::placeKernel(Operation *call, func::FuncOp kernel,
                                            const llvm::SmallPtrSetImpl<Storage *> &busy) {
  unsigned reads = kernel->getAttrOfType<IntegerAttr>(rt::RtDialect::kKernelReads).getInt();
  int64_t time = lives.start(call);
  std::string name = kernel.getName().str();
  name = name.substr(name.find('_') + 1);
  Slots used;
  for (Value value : call->getOperands().take_front(reads))
    used.reads.push_back(slotOf(value));
  // Operands of the kernel must not be overwritten, unless it permits that.
  auto readers = [&](Storage *storage) {
    return llvm::count_if(call->getOperands().take_front(reads),
                          [&](Value value) { return placeOf(value).storage == storage; });
  };
  for (auto [index, result] : llvm::enumerate(call->getResults())) {
    Value carried = call->getOperand(reads + index);
    if (!carried.getDefiningOp<tensor::EmptyOp>()) {
      Storage *storage = placeOf(carried).storage;
      assignTied(result, carried, call, readers(storage) == 0 && !busy.contains(storage));
      used.writes.push_back(slotOf(result));
      continue;
    }
    Storage *storage = preferredStorage(result, time);
    if (busy.contains(storage))
      storage = nullptr;
    Storage *preferred = reuse ? preferences.lookup(result) : nullptr;
    for (unsigned input = 0; input < reads && !storage; ++input) {
      Value value = call->getOperand(input);
      Place place = placeOf(value);
      // A buffer reserved for another value is not used: this value would have to move later.
      bool fits = place.offset == 0 && place.storage->bytes == bytesOf(result.getType()) &&
                  isDead(value, time) && readers(place.storage) == 1 &&
                  (!preferred || preferred == place.storage) && !busy.contains(place.storage);
      if (fits && canRunInPlace(kernel, input, reads + index))
        storage = place.storage;
    }
    assignStorage(result, storage ? storage : newStorage(result.getType(), name), time);
    used.writes.push_back(slotOf(result));
  }
  return used;
}

void PartEmitter::emitGemm(Operation *op) {
  GemmForm form = *matchGemm(op);
  Value a = op->getOperand(0), b = op->getOperand(1), init = op->getOperand(2);
  Value result = op->getResult(0);
  auto product = dyn_cast<rt::ProductOp>(op);
  Value bias = product ? product.getBias() : Value();
  if (form.swapped)
    std::swap(a, b);
  // A new tensor has no value to accumulate to.
  bool accumulate = !isa_and_nonnull<linalg::FillOp, tensor::EmptyOp>(init.getDefiningOp());
  if (accumulate) {
    Storage *target = placeOf(init).storage;
    assignTied(result, init, op,
               placeOf(a).storage != target && placeOf(b).storage != target &&
                   (!bias || placeOf(bias).storage != target));
  } else {
    assignResult(result, op, "matmul");
  }
  // Batches without a common stride have separate slots, up to the operand's end.
  auto slotAt = [&](Value value, int64_t start) {
    auto type = cast<RankedTensorType>(value.getType());
    if (start == 0)
      return slotOf(value);
    Place place = placeOf(value);
    int64_t bytes = dist::bytesPerElement(type.getElementType());
    return slotOf(place.storage, place.offset + start * bytes,
                  RankedTensorType::get({type.getNumElements() - start}, type.getElementType()));
  };
  for (const std::array<int64_t, 3> &start : form.starts)
    rt::GemmOp::create(steps, op->getLoc(), slotAt(a, start[0]), slotAt(b, start[1]),
                       slotAt(result, start[2]), bias ? slotOf(bias) : Value(), form.batch, form.m,
                       form.n, form.k, form.ld, form.stride, form.transA, form.transB, accumulate,
                       product ? product.getEpilogueAttr() : StringAttr());
}

void PartEmitter::emitContraction(rt::ContractionOp op) {
  // A new tensor has no value to accumulate to.
  bool isNew = isa_and_nonnull<linalg::FillOp, tensor::EmptyOp>(op.getInit().getDefiningOp());
  if (!isNew) {
    Storage *target = placeOf(op.getInit()).storage;
    assignTied(op.getResult(), op.getInit(), op,
               placeOf(op.getA()).storage != target && placeOf(op.getB()).storage != target);
  } else {
    assignResult(op.getResult(), op, "contract");
  }
  auto step = rt::ContractOp::create(steps, op.getLoc(), slotOf(op.getA()), slotOf(op.getB()),
                                     slotOf(op.getResult()), op.getStarts(), op.getExtents(),
                                     op.getAStrides(), op.getBStrides(), op.getCStrides(),
                                     !isNew && !op.getOverwrite());
  if (Attribute within = rt::withinOf(op))
    step->setAttr(rt::kWithin, within);
}

/// Layouts of a collective as shardings, given or implied by its kind.
static LogicalResult layoutsOf(dist::CollectiveOpInterface op, SmallVector<Attribute> &sources,
                               SmallVector<Attribute> &targets, SmallVector<Attribute> &globals) {
  if (ArrayAttr given = op.getSourcesAttr()) {
    llvm::append_range(sources, given);
    llvm::append_range(targets, op.getTargetsAttr());
    llvm::append_range(globals, op.getGlobalTypesAttr());
    return success();
  }
  using Kind = sharding::CollectiveKind;
  if (llvm::is_contained({Kind::broadcast, Kind::scatter, Kind::permute}, op.getKind()))
    return op->emitError()
           << "'" << op->getName()
           << "' is lowered from its layouts; give sources, targets and global_types";
  sharding::Mesh mesh = dist::lookupMesh(op, op.getMeshAttr()).getMesh();
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    sharding::TensorSharding source, target;
    std::vector<int64_t> shape;
    if (failed(op.getImpliedMove(mesh, index, source, target, shape)))
      return failure();
    MLIRContext *context = op->getContext();
    sources.push_back(dist::ShardingAttr::get(op.getMeshAttr(), mesh, source, context));
    targets.push_back(dist::ShardingAttr::get(op.getMeshAttr(), mesh, target, context));
    globals.push_back(TypeAttr::get(
        RankedTensorType::get(shape, cast<RankedTensorType>(operand.getType()).getElementType())));
  }
  return success();
}

LogicalResult PartEmitter::emitCollective(Operation *op, Operation *timed, bool async) {
  auto collective = cast<dist::CollectiveOpInterface>(op);
  SmallVector<Attribute> sources, targets, globals;
  if (failed(layoutsOf(collective, sources, targets, globals)))
    return failure();
  SmallVector<Value> from, to;
  for (Value operand : op->getOperands())
    from.push_back(slotOf(operand));
  StringRef kind = toString(collective.getKind());
  for (Value result : op->getResults()) {
    // An all-reduce may be in place: all libraries support that.
    Value operand = op->getOperand(cast<OpResult>(result).getResultNumber());
    if (places.contains(result))
      ;
    else if (collective.getKind() == sharding::CollectiveKind::all_reduce &&
             llvm::count(op->getOperands(), operand) == 1 && isDead(operand, lives.start(timed)) &&
             placeOf(operand).offset == 0 &&
             placeOf(operand).storage->bytes == bytesOf(result.getType()) &&
             !preferredStorage(result, lives.start(timed)))
      assignStorage(result, placeOf(operand).storage, lives.start(timed));
    else
      assignResult(result, timed, kind);
    to.push_back(slotOf(result));
  }
  dist::AxisListAttr axes = collective.getGroupAxes();
  if (!axes)
    axes = dist::AxisListAttr::get(op->getContext(), {});
  dist::ReduceKindAttr reduction;
  if (std::optional<dist::ReduceKind> one = collective.getReductionKind())
    reduction = dist::ReduceKindAttr::get(op->getContext(), *one);
  FlatSymbolRefAttr mesh = cast<dist::ShardingAttr>(sources.front()).getMesh();
  FlatSymbolRefAttr targetMesh = cast<dist::ShardingAttr>(targets.front()).getMesh();
  if (targetMesh == mesh)
    targetMesh = {};
  Type token = async ? rt::TokenType::get(op->getContext()) : Type();
  auto step = rt::CollectiveOp::create(steps, op->getLoc(), token, steps.getStringAttr(kind), from,
                                       to, mesh, axes, reduction, op->getAttr("fill"), targetMesh,
                                       steps.getArrayAttr(sources), steps.getArrayAttr(targets),
                                       steps.getArrayAttr(globals));
  if (Attribute reason = op->getAttr(dist::DistDialect::kReason))
    step->setAttr(dist::DistDialect::kReason, reason);
  if (async)
    tokens[cast<dist::StartOp>(timed).getToken()] = step.getToken();
  return success();
}

LogicalResult PartEmitter::emitStart(dist::StartOp start) {
  Operation *collective = start.getCollective();
  // A result's buffer is written from the start of the collective, and becomes the wait's result.
  dist::WaitOp wait = start.getWait();
  int64_t time = lives.start(start);
  for (auto [operand, result, waited] :
       llvm::zip_equal(collective->getOperands(), collective->getResults(), wait.getResults())) {
    Storage *storage = preferredStorage(waited, time);
    bool mayReplace = isa<dist::AllReduceOp>(collective) && placeOf(operand).offset == 0 &&
                      placeOf(operand).root == operand && lives.diesInStart(operand, start) &&
                      isDead(operand, lives.start(wait)) &&
                      placeOf(operand).storage->bytes == bytesOf(result.getType());
    if (!storage && mayReplace)
      storage = placeOf(operand).storage;
    if (!storage)
      storage = newStorage(result.getType(), collective->getName().stripDialect());
    assignStorage(waited, storage, time);
    Place place = places[waited]; // inserting moves what a reference would refer to
    places[result] = place;
    storage->live(time, lives.start(wait));
  }
  return emitCollective(collective, start, true);
}

void PartEmitter::emitSend(dist::SendOp send) {
  rt::SendOp::create(steps, send.getLoc(), slotOf(send.getOperand()), send.getId(),
                     send.getSource(), send.getTarget(),
                     cast<RankedTensorType>(send.getGlobalType()));
}

void PartEmitter::emitRecv(dist::RecvOp recv) {
  assignResult(recv.getResult(), recv, "recv");
  rt::RecvOp::create(steps, recv.getLoc(), slotOf(recv.getResult()), recv.getId(), recv.getSource(),
                     recv.getTarget(), cast<RankedTensorType>(recv.getGlobalType()));
}

/// Whether a new tensor is only a destination: the result has the buffer.
static bool isDestination(OpOperand &use) {
  if (Operation *call = use.getOwner(); isa<func::CallOp, rt::CallBlocksOp>(call))
    return use.getOperandNumber() >= call->getNumOperands() - call->getNumResults();
  auto op = dyn_cast<DestinationStyleOpInterface>(use.getOwner());
  return (op && isa<linalg::LinalgOp, rt::ProductOp, rt::ContractionOp>(use.getOwner()) &&
          op.isDpsInit(&use)) ||
         isa<scf::ForOp, scf::WhileOp>(use.getOwner());
}

LogicalResult PartEmitter::emitOp(Operation *op) {
  switch (classify(op)) {
  case StepKind::scalar:
    return success(); // only control flow still uses it
  case StepKind::view: {
    Place place = placeOf(op->getOperand(0));
    Type element = cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
    place.offset += *dist::viewOffset(op) * dist::bytesPerElement(element);
    places[op->getResult(0)] = place;
    return success();
  }
  case StepKind::free:
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      assignStorage(op->getResult(0), constantStorage(cast<ElementsAttr>(constant.getValue())), 0);
    else if (isa<tensor::EmptyOp>(op) && !llvm::all_of(op->getUses(), isDestination))
      assignResult(op->getResult(0), op, "empty");
    return success(); // the zero fill of a gemm
  case StepKind::gemm:
    if (auto contraction = dyn_cast<rt::ContractionOp>(op))
      emitContraction(contraction);
    else
      emitGemm(op);
    return success();
  default:
    break;
  }
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](func::CallOp call) { return emitCall(call), success(); })
      .Case([&](rt::CallBlocksOp call) { return emitCallBlocks(call), success(); })
      .Case([&](scf::ForOp loop) { return emitFor(loop); })
      .Case([&](scf::WhileOp loop) { return emitWhile(loop); })
      .Case([&](scf::IfOp branch) { return emitIf(branch); })
      .Case([&](dist::StartOp start) { return emitStart(start); })
      .Case([&](dist::WaitOp wait) {
        rt::WaitOp::create(steps, wait.getLoc(), tokens.lookup(wait.getToken()));
        return success();
      })
      .Case([&](dist::SendOp send) { return emitSend(send), success(); })
      .Case([&](dist::RecvOp recv) { return emitRecv(recv), success(); })
      .Case([&](dist::CollectiveOpInterface) { return emitCollective(op, op, false); })
      .Case<dist::AxisIndexOp, dist::SegmentOp>([&](auto) { return success(); })
      .Case([&](tensor::FromElementsOp elements) {
        // A coordinate: a slot that the executor fills.
        Value counter = elements.getElements()[0];
        if (places.contains(elements))
          return success(); // an induction variable, placed by its loop
        Storage *storage = newStorage(elements.getType(), "coordinate");
        storage->writable = false;
        assignStorage(elements, storage, 0);
        storage->live(0, lives.end());
        auto index = counter.getDefiningOp<dist::AxisIndexOp>();
        bool own = index.getMeshAttr() == part.getMeshAttr();
        rt::CoordinateOp::create(homes, op->getLoc(), slotOf(Value(elements)),
                                 own ? FlatSymbolRefAttr() : index.getMeshAttr(),
                                 index.getAxesAttr());
        return success();
      })
      .Case([&](arith::ConstantOp constant) {
        assignStorage(constant, constantStorage(cast<ElementsAttr>(constant.getValue())), 0);
        return success();
      })
      .Default([&](Operation *) {
        return LogicalResult(op->emitError()
                             << "'" << op->getName() << "' cannot be lowered to a step");
      });
}

LogicalResult PartEmitter::emitBlock(Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(emitOp(&op)))
      return failure();
  return success();
}
