//===- GpuOnlineSum.cpp - A maximum and a sum in one walk over a row ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A softmax needs the maximum m of a row x, then s = sum over j of w[j] * exp(x[j] - m). Where a
// row is neither in registers nor in shared memory, each reads the row. Because
//
//   exp(x - m') = exp(x - m) * exp(m - m'),
//
// a partial sum relative to one shift becomes one relative to another by a factor. So one walk
// computes both: a thread's lane keeps its maximum so far, and multiplies its sum when that grows
// (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018).
//
// The sum's shift need not be the maximum itself: one-element members between the two may replace
// it, for example where it is infinite. The walk's shift is the maximum, or 0 where that is not
// finite; afterwards the sum is multiplied by exp(walk's shift - shift).
//
//===----------------------------------------------------------------------===//

#include "../Groups/GpuShiftForm.h"
#include "GpuEmitter.h"

#include "../../Kernels/KernelLanes.h"

using namespace mlir;

namespace tessera::codegen {

/// The only reduction of a member, if it is of one of the kinds.
static const NestOutput *reductionOf(const GpuMember &member,
                                     ArrayRef<vector::CombiningKind> kinds) {
  const NestOutput *only = nullptr;
  for (const NestOutput &output : member.outputs) {
    if (!output.accumulates)
      continue;
    if (only || !output.kind || !llvm::is_contained(kinds, *output.kind))
      return nullptr;
    only = &output;
  }
  return only;
}

static const NestOutput *maximumOf(const GpuMember &member) {
  return reductionOf(member, {vector::CombiningKind::MAXIMUMF, vector::CombiningKind::MAXNUMF});
}

static const NestOutput *sumOf(const GpuMember &member) {
  return reductionOf(member, {vector::CombiningKind::ADD});
}

/// The values that are combined with the accumulator: one, or two factors; none if it has other
/// uses.
static SmallVector<Value> reducedValues(const GpuMember &member, const NestOutput &output) {
  linalg::GenericOp op = member.op;
  auto accumulator = op.getMatchingBlockArgument(member.accesses[output.operand].operand);
  auto number = &output - member.outputs.begin();
  Operation *combiner = op.getBody()->getTerminator()->getOperand(number).getDefiningOp();
  if (!combiner || !accumulator.hasOneUse() || *accumulator.user_begin() != combiner)
    return {};
  SmallVector<Value> values(combiner->getOperands());
  llvm::erase(values, accumulator);
  bool isFma = isa<math::FmaOp>(combiner) && combiner->getOperand(2) == accumulator;
  return values.size() == (isFma ? 2 : 1) ? values : SmallVector<Value>();
}

/// How values of bodies depend on the shift of a sum.
class GpuEmitter::ShiftAnalysis {
public:
  /// `first`, `last`: positions of the maximum and of the sum in the group.
  ShiftAnalysis(const GpuEmitter &emitter, size_t first, size_t last, const Key &shift)
      : emitter(emitter), members(emitter.group.members), first(first), last(last), shift(shift),
        greatest(reducedValues(members[first], *maximumOf(members[first]))) {}

  /// Whether the reduced value of the sum is proportional to exp(x - shift), where x is what the
  /// maximum is taken of, and all else that it needs is there when the maximum is computed.
  bool isProportional() {
    SmallVector<Value> factors = reducedValues(members[last], *sumOf(members[last]));
    unsigned scaled = 0;
    for (Value factor : factors) {
      Form form = formOf(members[last], factor);
      if (form != Form::proportional && form != Form::independent)
        return false;
      scaled += form == Form::proportional;
    }
    return scaled == 1;
  }

private:
  using Form = ShiftForm;

  const GpuAccess *accessOf(const GpuMember &member, Value value) const {
    linalg::GenericOp op = member.op;
    for (const GpuAccess &access : member.accesses)
      if (op.getMatchingBlockArgument(access.operand) == value)
        return &access;
    return nullptr;
  }

  /// The value that a recomputed member writes to `key`.
  std::optional<std::pair<const GpuMember *, Value>> recomputedAt(const Key &key) const {
    const GpuMember *producer = key.vector ? emitter.producerOf(key) : nullptr;
    if (!producer)
      return std::nullopt;
    linalg::GenericOp op = producer->op;
    for (auto [output, value] :
         llvm::zip_equal(producer->outputs, op.getBody()->getTerminator()->getOperands()))
      if (isEqual(emitter.keyInRow(*producer, producer->accesses[output.operand]), key))
        return std::pair(producer, Value(value));
    return std::nullopt;
  }

  static bool isEqual(const Key &a, const Key &b) { return !(a < b) && !(b < a); }

  /// Whether the memory has the same contents when the maximum and when the sum is computed.
  bool isUnchanged(Value root) const {
    for (const GpuMember &member : ArrayRef(members).slice(first, last - first))
      for (const GpuAccess &access : member.accesses)
        if (access.output && access.root == root)
          return false;
    return true;
  }

  Form formOf(const GpuMember &member, Value value) {
    Operation *def = value.getDefiningOp();
    if (!def) {
      const GpuAccess *access = accessOf(member, value);
      if (!access || access->output)
        return Form::other;
      if (access->scalar)
        return Form::independent;
      Key key = emitter.keyInRow(member, *access);
      if (isEqual(key, shift))
        return Form::shift;
      if (auto producer = recomputedAt(key))
        return formOf(*producer->first, producer->second);
      // Filled at another time, its slot could replace a value that is still needed.
      bool isSlot = key.vector && emitter.slots.contains(key);
      return !isSlot && isUnchanged(access->root) ? Form::independent : Form::other;
    }
    linalg::GenericOp op = member.op;
    if (def->getBlock() != op.getBody())
      return op.getRegion().isAncestor(def->getParentRegion()) ? Form::other : Form::independent;
    if (auto load = dyn_cast<memref::LoadOp>(def))
      if (!isUnchanged(rootOf(load.getMemRef())))
        return Form::other;
    if (def->getNumRegions() != 0)
      return Form::other;
    SmallVector<Form> forms;
    for (Value operand : def->getOperands())
      forms.push_back(formOf(member, operand));
    return shiftFormOf(def, forms, [&]() {
      return greatest.size() == 1 &&
             isSame(member, def->getOperand(0), members[first], greatest.front());
    });
  }

  /// Whether two members compute the same value at the same element of a row, apart from extensions
  /// of floats.
  bool isSame(const GpuMember &one, Value left, const GpuMember &two, Value right) const {
    auto strip = [](Value value) {
      while (auto extension = value.getDefiningOp<arith::ExtFOp>())
        value = extension.getIn();
      return value;
    };
    left = strip(left);
    right = strip(right);
    Operation *leftDef = left.getDefiningOp(), *rightDef = right.getDefiningOp();
    const GpuAccess *leftAccess = leftDef ? nullptr : accessOf(one, left);
    const GpuAccess *rightAccess = rightDef ? nullptr : accessOf(two, right);
    // Through recomputed values.
    if (leftAccess && !leftAccess->scalar)
      if (auto producer = recomputedAt(emitter.keyInRow(one, *leftAccess)))
        return isSame(*producer->first, producer->second, two, right);
    if (rightAccess && !rightAccess->scalar)
      if (auto producer = recomputedAt(emitter.keyInRow(two, *rightAccess)))
        return isSame(one, left, *producer->first, producer->second);
    if (leftAccess && rightAccess) {
      if (leftAccess->scalar || rightAccess->scalar)
        return leftAccess->scalar && rightAccess->scalar &&
               leftAccess->operand->get() == rightAccess->operand->get();
      return isEqual(emitter.keyInRow(one, *leftAccess), emitter.keyInRow(two, *rightAccess));
    }
    if (!leftDef || !rightDef)
      return false;
    if (leftDef->getName() != rightDef->getName() || left.getType() != right.getType() ||
        leftDef->getAttrDictionary() != rightDef->getAttrDictionary() ||
        leftDef->getNumOperands() != rightDef->getNumOperands() || leftDef->getNumRegions() != 0)
      return false;
    if (isa<linalg::IndexOp>(leftDef))
      return haveSameLoops(one, two);
    if (!isPure(leftDef))
      return leftDef == rightDef;
    for (auto [a, b] : llvm::zip_equal(leftDef->getOperands(), rightDef->getOperands()))
      if (!isSame(one, a, two, b))
        return false;
    return true;
  }

  /// Whether equal numbers of loops have equal indices.
  bool haveSameLoops(const GpuMember &one, const GpuMember &two) const {
    unsigned classes = emitter.group.extents.size();
    return one.extents == two.extents &&
           GpuGroup::classLoops(one, classes) == GpuGroup::classLoops(two, classes);
  }

  const GpuEmitter &emitter;
  const std::vector<GpuMember> &members;
  size_t first, last;
  Key shift;
  SmallVector<Value> greatest;
};

/// Whether the member writes nothing to memory but its reductions.
bool GpuEmitter::areOthersRecomputed(const GpuMember &member) const {
  return llvm::all_of(member.outputs, [&](const NestOutput &output) {
    return output.accumulates ||
           producerOf(keyInRow(member, member.accesses[output.operand])) == &member;
  });
}

void GpuEmitter::findOnlineSums() {
  for (auto [first, maximum] : llvm::enumerate(group.members)) {
    const NestOutput *greatest = maximumOf(maximum);
    if (!greatest || ownVolume(maximum) == 1 || !areOthersRecomputed(maximum))
      continue;
    const GpuAccess &limit = maximum.accesses[greatest->operand];
    // A row in shared memory is read once anyway.
    if (llvm::any_of(maximum.accesses, [&](const GpuAccess &access) {
          return !access.scalar && slotOf(keyInRow(maximum, access));
        }))
      continue;
    // The values of one element per row that depend on the maximum.
    SmallVector<Key> shifts;
    for (auto [last, sum] : llvm::enumerate(group.members)) {
      if (last < first)
        continue;
      for (const NestOutput &output : sum.outputs) {
        const GpuAccess &access = sum.accesses[output.operand];
        Key key = keyInRow(sum, access);
        if (!key.vector && access.element == limit.element)
          shifts.push_back(key);
      }
      const NestOutput *total = sumOf(sum);
      if (last == first || !total || ownVolume(sum) != ownVolume(maximum) ||
          !areOthersRecomputed(sum) || !isa<FloatType>(sum.accesses[total->operand].element) ||
          bytesOf(sum.accesses[total->operand].element) < bytesOf(limit.element))
        continue;
      for (const Key &key : shifts)
        if (ShiftAnalysis(*this, first, last, key).isProportional()) {
          onlineSums.push_back({&maximum, &sum, key, {}, {}});
          break;
        }
      if (!onlineSums.empty() && onlineSums.back().sum == &sum)
        break;
    }
  }
}

/// A number as a float, or as a vector of them.
Value GpuEmitter::splatOf(Type type, const APFloat &number) {
  TypedAttr attr = b.getFloatAttr(getElementTypeOrSelf(type), number);
  if (auto vector = dyn_cast<VectorType>(type))
    attr = DenseElementsAttr::get(vector, Attribute(attr));
  return arith::ConstantOp::create(b, loc, attr);
}

/// The value, or 0 if it is not finite.
Value GpuEmitter::finiteOr0(Value value) {
  Type type = value.getType();
  const llvm::fltSemantics &semantics =
      cast<FloatType>(getElementTypeOrSelf(type)).getFloatSemantics();
  Value isFinite =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, math::AbsFOp::create(b, loc, value),
                            splatOf(type, APFloat::getInf(semantics)));
  return arith::SelectOp::create(b, loc, isFinite, value,
                                 splatOf(type, APFloat::getZero(semantics)));
}

/// exp(from - to) in floats of `element`.
Value GpuEmitter::expDifference(Value from, Value to, FloatType element) {
  auto extend = [&](Value value) -> Value {
    Type type = element;
    if (auto vector = dyn_cast<VectorType>(value.getType()))
      type = VectorType::get(vector.getShape(), element);
    return value.getType() == type ? value : arith::ExtFOp::create(b, loc, type, value).getResult();
  };
  return math::ExpOp::create(b, loc, arith::SubFOp::create(b, loc, extend(from), extend(to)));
}

/// A sum relative to the maximum `from` made relative to the maximum `to`.
Value GpuEmitter::shiftSum(Value sum, Value from, Value to) {
  auto element = cast<FloatType>(getElementTypeOrSelf(sum.getType()));
  Value factor = expDifference(finiteOr0(from), finiteOr0(to), element);
  // Terms are 0 until the maximum exceeds -inf, and the factor may be infinite then.
  Type type = from.getType();
  const llvm::fltSemantics &semantics =
      cast<FloatType>(getElementTypeOrSelf(type)).getFloatSemantics();
  Value none = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, from,
                                     splatOf(type, APFloat::getInf(semantics, /*Negative=*/true)));
  factor = arith::SelectOp::create(
      b, loc, none, splatOf(factor.getType(), APFloat(element.getFloatSemantics(), 1)), factor);
  if (auto vector = dyn_cast<VectorType>(sum.getType()); vector && !isa<VectorType>(type))
    factor = widen(b, loc, factor, vector.getNumElements());
  return arith::MulFOp::create(b, loc, sum, factor);
}

/// Marks the exponentials of x - shift. The greatest is 1 and all are added, so that approximations
/// of the others, relative to their own size, are as good as rounding.
void GpuEmitter::markTerms(Operation *loop, Value shift) {
  loop->walk([&](math::ExpOp exp) {
    auto difference = exp.getOperand().getDefiningOp<arith::SubFOp>();
    Value from = difference ? difference.getRhs() : Value();
    while (from && from != shift && from.getDefiningOp() &&
           isa<vector::BroadcastOp, arith::ExtFOp>(from.getDefiningOp()))
      from = from.getDefiningOp()->getOperand(0);
    if (from == shift && getElementTypeOrSelf(exp.getType()).isF32())
      exp->setAttr(kTermAttr, b.getUnitAttr());
  });
}

/// Computes the maximum and the sum relative to it, in one walk over the row.
void GpuEmitter::walkOnline(OnlineSum &online) {
  const GpuMember &maximum = *online.maximum, &sum = *online.sum;
  const NestOutput &greatestOutput = *maximumOf(maximum);
  const GpuAccess &limit = maximum.accesses[greatestOutput.operand];
  const GpuAccess &total = sum.accesses[sumOf(sum)->operand];
  vector::CombiningKind kind = *greatestOutput.kind;
  int64_t volume = ownVolume(maximum);
  const Space &space = spaces[volume];
  // One maximum for all lanes and chunks, so that the sums are shifted once for all of them.
  Values carried{neutralOf(kind, limit.element, /*lanes=*/0),
                 neutralOf(vector::CombiningKind::ADD, total.element, space.lanes)};
  Value old = load(maximum, limit, Chunk());
  loadPerRow(maximum);
  loadPerRow(sum, &online.shift);
  overBursts(space, volume, carried, [&](ArrayRef<Chunk> chunks, Values &current) {
    loadFirst(maximum, chunks);
    Values most{widen(b, loc, current[0], space.lanes)};
    for (const Chunk &chunk : chunks)
      keepInside(chunk, body(maximum, chunk, most), most);
    Value greatest = overLanes(most[0], kind);
    Values part{shiftSum(current[1], current[0], greatest)};
    Value shift = finiteOr0(greatest);
    cache[online.shift] = shift;
    for (const Chunk &chunk : chunks)
      keepInside(chunk, body(sum, chunk, part), part);
    current = {greatest, part[0]};
    markTerms(b.getInsertionBlock()->getParentOp(), shift);
  });
  Value greatest = carried[0];
  Value part = overLanes(carried[1], vector::CombiningKind::ADD);
  Value most = teamReduce(greatest, kind);
  online.part = teamReduce(shiftSum(part, greatest, most), vector::CombiningKind::ADD);
  online.reference = finiteOr0(most);
  store(maximum, limit, Chunk(), vector::makeArithReduction(b, loc, kind, old, most));
}

/// Stores the sum, at the position of its member.
void GpuEmitter::endOnline(OnlineSum &online) {
  const GpuMember &sum = *online.sum;
  const GpuAccess &total = sum.accesses[sumOf(sum)->operand];
  Value shift = cache.at(online.shift);
  Value value = arith::MulFOp::create(
      b, loc, online.part, expDifference(online.reference, shift, cast<FloatType>(total.element)));
  Value old = load(sum, total, Chunk());
  store(sum, total, Chunk(), arith::AddFOp::create(b, loc, old, value));
}

/// Emits the member as a part of a walk that computes a maximum and a sum; false if it is none.
bool GpuEmitter::rowOnline(const GpuMember &member) {
  for (OnlineSum &online : onlineSums) {
    if (online.maximum == &member)
      return walkOnline(online), true;
    if (online.sum == &member)
      return endOnline(online), true;
  }
  return false;
}

} // namespace tessera::codegen
