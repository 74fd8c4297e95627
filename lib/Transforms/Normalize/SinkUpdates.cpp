//===- SinkUpdates.cpp - Sums at indices added to state -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step of gradient descent adds a scaled scatter to a table:
//
//   g[v, j] = 0 + (over i) select(index[i] == v, u[i, j], 0)
//   r[v, j] = w[v, j] - c * g[v, j]
//
// It is rewritten so that the table is updated itself, if g has no other user:
//
//   r[v, j] = w[v, j] + (over i) select(index[i] == v, -(c * u[i, j]), 0)
//
// which touches the updated rows alone where the table is updated in its own place, and
// needs no memory for g. Likewise for what else is linear in g (a moment that decays), and
// for a sum of such g, of a table in which a program looks up several times.
// Only next to arguments, such as state, since other summands may be contributions of
// devices that are reduced together with g; and only if the updates have at most half
// of the table's elements, since devices that share the updates then send less for these
// than for a sum of the table's size.
//
//===----------------------------------------------------------------------===//

#include "SinkUpdates.h"

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Dist/Rules/Selection.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

/// A factor of what is linear in the sum.
struct Scale {
  Operation *op; ///< mulf or divf by `factor`, or negf
  Value factor;  ///< the same for all elements; null for negf
};

/// The body of an elementwise op as `scales(g) + rest`, of one of its operands g.
struct Linear {
  SmallVector<Scale> scales; ///< innermost first
  Operation *sum = nullptr;  ///< the first addf or subf on the path from g to the result, or null
  unsigned operand = 0;      ///< of `sum`, that depends on g
};

} // namespace

static bool isElementwise(linalg::GenericOp op) {
  return op && op->getNumResults() == 1 && op.hasPureTensorSemantics() &&
         op.getNumReductionLoops() == 0 && !op.hasIndexSemantics() &&
         op.getIndexingMapsArray().back().isIdentity() && !getSharding(op->getResult(0));
}

static bool isUpdate(linalg::GenericOp op) {
  return op && op->getNumResults() == 1 &&
         llvm::any_of(selectedLoops(op), [&](const SelectedLoop &each) {
           return op.getIteratorTypesArray()[each.loop] == utils::IteratorType::parallel;
         });
}

/// Whether a value comes from the arguments of the function or of a loop, and from constants,
/// element by element, or is such a value with updates. `isState` is set if an argument is among
/// them.
static bool isOfArguments(Value value, bool &isState, int depth = 8) {
  if (isa<BlockArgument>(value)) {
    isState = true;
    return true;
  }
  Operation *made = value.getDefiningOp();
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || type.getNumElements() == 1 || matchPattern(value, m_Constant()) ||
      isa<tensor::EmptyOp, tensor::SplatOp, linalg::FillOp>(made))
    return true;
  auto op = dyn_cast<linalg::GenericOp>(made);
  if (depth == 0 || !op)
    return false;
  if (isUpdate(op))
    return isOfArguments(op.getDpsInits()[0], isState, depth - 1);
  return isElementwise(op) && llvm::all_of(op.getInputs(), [&](Value input) {
           return isOfArguments(input, isState, depth - 1);
         });
}

/// Whether a value of a body is the same in all iterations: from outside, constant, or an element
/// of a tensor of rank 0.
static bool isUniform(linalg::GenericOp op, Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getOwner() != op.getBody() ||
           op.getIndexingMapsArray()[argument.getArgNumber()].getNumResults() == 0;
  return value.getDefiningOp()->getBlock() != op.getBody() || matchPattern(value, m_Constant());
}

/// The path from an element g of an operand to the result; nothing if it is not linear, or if g is
/// used twice.
static std::optional<Linear> matchLinear(linalg::GenericOp op, Value g) {
  Linear linear;
  for (Value value = g;;) {
    if (!value.hasOneUse())
      return std::nullopt;
    OpOperand &use = *value.use_begin();
    Operation *user = use.getOwner();
    unsigned position = use.getOperandNumber();
    if (isa<linalg::YieldOp>(user))
      return linear;
    if (isa<arith::AddFOp, arith::SubFOp>(user)) {
      if (isa<arith::SubFOp>(user) && position == 1)
        linear.scales.push_back({user, {}});
      if (!linear.sum) {
        linear.sum = user;
        linear.operand = position;
      }
    } else if (isa<arith::MulFOp, arith::DivFOp>(user)) {
      Value other = user->getOperand(1 - position);
      if (!isUniform(op, other) || (isa<arith::DivFOp>(user) && position == 1))
        return std::nullopt;
      linear.scales.push_back({user, other});
    } else if (isa<arith::NegFOp>(user)) {
      linear.scales.push_back({user, {}});
    } else {
      return std::nullopt;
    }
    value = user->getResult(0);
  }
}

/// The updates u of a scatter `g[v, j] = 0 + (over i) select(index[i] == v, u[i, j], 0)` of floats
/// of at least 32 bits that has one user and few updates; null if the op is another one.
static OpOperand *updatesOf(linalg::GenericOp op) {
  if (op->getNumResults() != 1 || !op->getResult(0).hasOneUse() || getSharding(op->getResult(0)) ||
      op.getNumReductionLoops() == 0)
    return nullptr;
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  auto element = dyn_cast<FloatType>(type.getElementType());
  if (!element || element.getWidth() < 32 || !isUpdate(op) ||
      !matchPattern(op.getDpsInits()[0], m_AnyZeroFloat()))
    return nullptr;
  Block &body = *op.getBody();
  auto sum = body.getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  auto select = sum ? sum.getRhs().getDefiningOp<arith::SelectOp>() : nullptr;
  auto update = select ? dyn_cast<BlockArgument>(select.getTrueValue()) : BlockArgument();
  if (!update || update.getOwner() != &body || !update.hasOneUse() ||
      sum.getLhs() != body.getArguments().back() || update == body.getArguments().back() ||
      !matchPattern(select.getFalseValue(), m_AnyZeroFloat()))
    return nullptr;
  OpOperand &operand = op->getOpOperand(update.getArgNumber());
  auto updates = cast<RankedTensorType>(operand.get().getType());
  return 2 * updates.getNumElements() <= type.getNumElements() ? &operand : nullptr;
}

/// The updates with the scales of a user applied to each of them.
static Value scaled(OpBuilder &b, linalg::GenericOp user, const Linear &linear, Value updates) {
  if (linear.scales.empty())
    return updates;
  Location loc = user.getLoc();
  auto type = cast<RankedTensorType>(updates.getType());
  int64_t rank = type.getRank();
  SmallVector<Value> inputs{updates};
  SmallVector<AffineMap> maps{b.getMultiDimIdentityMap(rank)};
  for (const Scale &scale : linear.scales)
    if (auto argument = dyn_cast_or_null<BlockArgument>(scale.factor);
        argument && argument.getOwner() == user.getBody()) {
      inputs.push_back(user.getInputs()[argument.getArgNumber()]);
      maps.push_back(AffineMap::get(rank, 0, b.getContext()));
    }
  maps.push_back(b.getMultiDimIdentityMap(rank));
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  return linalg::GenericOp::create(
             b, loc, type, inputs, empty, maps,
             SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel),
             [&](OpBuilder &b, Location loc, ValueRange args) {
               Value value = args.front();
               size_t next = 1;
               for (const Scale &scale : linear.scales) {
                 if (!scale.factor) {
                   value = arith::NegFOp::create(b, loc, value);
                   continue;
                 }
                 Value factor = scale.factor;
                 if (auto argument = dyn_cast<BlockArgument>(factor);
                     argument && argument.getOwner() == user.getBody())
                   factor = args[next++];
                 else if (Operation *constant = factor.getDefiningOp();
                          constant && constant->getBlock() == user.getBody())
                   factor = b.clone(*constant)->getResult(0);
                 if (isa<arith::MulFOp>(scale.op))
                   value = arith::MulFOp::create(b, loc, value, factor);
                 else
                   value = arith::DivFOp::create(b, loc, value, factor);
               }
               linalg::YieldOp::create(b, loc, value);
             })
      .getResult(0);
}

/// What a user computes where g is zero: a copy of it without that operand, or an operand that it
/// would only copy.
static Value withoutSum(OpBuilder &b, linalg::GenericOp user, const Linear &linear, unsigned g) {
  SmallVector<Value> inputs(user.getInputs());
  SmallVector<AffineMap> maps = user.getIndexingMapsArray();
  inputs.erase(inputs.begin() + g);
  maps.erase(maps.begin() + g);
  auto made = linalg::GenericOp::create(
      b, user.getLoc(), user->getResultTypes(), inputs, user.getOutputs(), maps,
      user.getIteratorTypesArray(), [&](OpBuilder &b, Location loc, ValueRange args) {
        IRMapping mapping;
        for (auto [n, argument] : llvm::enumerate(user.getBody()->getArguments()))
          if (n != g)
            mapping.map(argument, args[n - (n > g)]);
        llvm::SmallPtrSet<Operation *, 4> before; // the sum; they depend on g alone
        for (Operation *op = *user.getBody()->getArgument(g).user_begin(); op != linear.sum;
             op = *op->getResult(0).user_begin())
          before.insert(op);
        for (Operation &op : *user.getBody()) {
          if (before.contains(&op))
            continue;
          if (&op != linear.sum) {
            b.clone(op, mapping);
            continue;
          }
          Value rest = mapping.lookupOrDefault(op.getOperand(1 - linear.operand));
          if (isa<arith::SubFOp>(op) && linear.operand == 0)
            rest = arith::NegFOp::create(b, loc, rest);
          mapping.map(op.getResult(0), rest);
        }
      });
  auto copied = dyn_cast<BlockArgument>(made.getBody()->getTerminator()->getOperand(0));
  if (!copied || copied.getOwner() != made.getBody())
    return made.getResult(0);
  unsigned n = copied.getArgNumber();
  if (n >= inputs.size() || !maps[n].isIdentity() ||
      inputs[n].getType() != user->getResult(0).getType())
    return made.getResult(0);
  made.erase();
  return inputs[n];
}

/// Whether the scatter can move behind a user of `g`, whose other operands are of arguments, and
/// how the user depends on g.
static std::optional<Linear> matchUser(OpOperand &use) {
  auto user = dyn_cast<linalg::GenericOp>(use.getOwner());
  Operation *made = use.get().getDefiningOp();
  if (!isElementwise(user) || user->getBlock() != made->getBlock() || !user.isDpsInput(&use) ||
      !user.getMatchingIndexingMap(&use).isIdentity() ||
      user->getResult(0).getType() != use.get().getType())
    return std::nullopt;
  unsigned g = use.getOperandNumber();
  bool isState = false;
  for (auto [n, input] : llvm::enumerate(user.getInputs()))
    if (n != g && !isOfArguments(input, isState))
      return std::nullopt;
  std::optional<Linear> linear = matchLinear(user, user.getBody()->getArgument(g));
  return linear && linear->sum && !isState ? std::nullopt : linear;
}

/// A copy of a scatter with other updates, that are added to `init`.
static linalg::GenericOp withUpdates(OpBuilder &b, linalg::GenericOp op, Value updates,
                                     Value init) {
  auto copy = cast<linalg::GenericOp>(b.clone(*op));
  copy->setOperand(updatesOf(op)->getOperandNumber(), updates);
  copy.getDpsInitsMutable()[0].set(init);
  return copy;
}

/// Moves a scatter behind its user; null if that is not possible.
static linalg::GenericOp sink(linalg::GenericOp op) {
  OpOperand *updates = updatesOf(op);
  if (!updates)
    return nullptr;
  OpOperand &use = *op->getResult(0).use_begin();
  std::optional<Linear> linear = matchUser(use);
  if (!linear)
    return nullptr;
  auto user = cast<linalg::GenericOp>(use.getOwner());
  OpBuilder b(user);
  Value init =
      linear->sum ? withoutSum(b, user, *linear, use.getOperandNumber()) : op.getDpsInits()[0];
  linalg::GenericOp sunk = withUpdates(b, op, scaled(b, user, *linear, updates->get()), init);
  user->getResult(0).replaceAllUsesWith(sunk->getResult(0));
  user.erase();
  op.erase();
  return linear->sum ? nullptr : sunk;
}

/// The scatters that a value is the sum of, and the ops that add them, users first; false if it is
/// another value.
static bool collectSum(Value value, SmallVector<linalg::GenericOp> &scatters,
                       SmallVector<linalg::GenericOp> &adds) {
  auto op = value.getDefiningOp<linalg::GenericOp>();
  if (!op || !value.hasOneUse())
    return false;
  if (updatesOf(op)) {
    scatters.push_back(op);
    return true;
  }
  if (!isElementwise(op) || op.getNumDpsInputs() != 2 ||
      !llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) { return map.isIdentity(); }))
    return false;
  auto sum = op.getBody()->getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  Block &body = *op.getBody();
  if (!sum || !llvm::equal(sum->getOperands(), body.getArguments().take_front(2)))
    return false;
  adds.push_back(op);
  return collectSum(op.getInputs()[0], scatters, adds) &&
         collectSum(op.getInputs()[1], scatters, adds);
}

/// Moves the scatters of a sum behind the user that adds it to state.
static void sinkSum(linalg::GenericOp add) {
  SmallVector<linalg::GenericOp> scatters, adds;
  if (!collectSum(add->getResult(0), scatters, adds))
    return;
  int64_t updates = 0;
  for (linalg::GenericOp scatter : scatters)
    updates += cast<RankedTensorType>(updatesOf(scatter)->get().getType()).getNumElements();
  if (2 * updates > cast<RankedTensorType>(add->getResult(0).getType()).getNumElements())
    return;
  SmallVector<std::pair<linalg::GenericOp, Linear>> users;
  OpOperand *use = nullptr;
  for (Value sum = add->getResult(0); users.empty() || !users.back().second.sum;
       sum = users.back().first->getResult(0)) {
    if (!sum.hasOneUse())
      return;
    use = &*sum.use_begin();
    std::optional<Linear> linear = matchUser(*use);
    if (!linear)
      return;
    users.emplace_back(cast<linalg::GenericOp>(use->getOwner()), std::move(*linear));
  }
  auto [last, linear] = users.back();
  OpBuilder b(last);
  Value result = withoutSum(b, last, linear, use->getOperandNumber());
  for (linalg::GenericOp scatter : scatters) {
    Value added = updatesOf(scatter)->get();
    for (auto &[user, scales] : users)
      added = scaled(b, user, scales, added);
    result = withUpdates(b, scatter, added, result)->getResult(0);
  }
  last->getResult(0).replaceAllUsesWith(result);
  for (auto &[user, scales] : llvm::reverse(users))
    user.erase();
  for (linalg::GenericOp each : adds)
    each.erase();
  for (linalg::GenericOp each : scatters)
    each.erase();
}

/// The op that adds the result of an op to another value, if it has no other user.
static linalg::GenericOp adderOf(linalg::GenericOp op) {
  SmallVector<linalg::GenericOp> scatters, adds;
  Value value = op->getResult(0);
  auto user =
      value.hasOneUse() ? dyn_cast<linalg::GenericOp>(*value.user_begin()) : linalg::GenericOp();
  return user && collectSum(user->getResult(0), scatters, adds) ? user : linalg::GenericOp();
}

void dist::sinkUpdates(func::FuncOp function) {
  SmallVector<linalg::GenericOp> scatters;
  llvm::SetVector<Operation *> sums;
  function.walk([&](linalg::GenericOp op) {
    if (!updatesOf(op)) // users are erased below; they are no scatters
      return;
    linalg::GenericOp sum = adderOf(op);
    if (!sum)
      scatters.push_back(op);
    else
      while (linalg::GenericOp next = adderOf(sum))
        sum = next;
    if (sum)
      sums.insert(sum);
  });
  for (linalg::GenericOp op : scatters)
    while (op)
      op = sink(op);
  for (Operation *op : sums)
    sinkSum(cast<linalg::GenericOp>(op));
}
