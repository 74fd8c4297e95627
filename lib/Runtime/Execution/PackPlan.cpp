//===- PackPlan.cpp - Which right operands are packed ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Packing pays where products with few rows read one operand several times: in a
// loop, in several micro-batches, or in every step if it is a constant. Times are in
// units of one packing, measured with oneDNN 2.6 on one core of a Zen 5:
//
//   m = 4 .. 64, k x n of 256x1024, 4096x1024       saved by each product
//   f32, B transposed                               0.13, 0.6, 0.75, 0.65
//   f32                                             0.08, 0.07, 0.2
//   bf16 (packed by each product otherwise)         1
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/Execution/PackedProducts.h"

#include "../Artifact/Steps.h"
#include "tessera/Runtime/Execution/Gemm.h"

#include <algorithm>
#include <tuple>

namespace tessera::runtime {

namespace {

/// Matrices with equal keys in one part have equal panels.
using Key = std::tuple<Slot::Space, int64_t, DType, int64_t, int64_t, int64_t, bool>;

struct Candidate {
  PackedOperand operand;
  const Slot *slot;
  std::vector<const GemmStep *> products;
  double saved = 0;  ///< by all products of a step
  double packed = 0; ///< how often
  bool isFresh = false;
};

class Planner {
public:
  Planner(const Program &program, const Part &part) : program(program), part(part) {
    forEachStep(part.steps, [&](const Step &step) {
      if (auto *gemm = std::get_if<GemmStep>(&step.action); gemm && isPackable(*gemm))
        add(*gemm);
    });
    reads.resize(part.slots.size());
    forEachStep(part.steps, [&](const Step &step) {
      addWrites(step);
      for (int64_t slot : readSlots(step))
        ++reads[slot];
    });
  }

  PackPlan plan(int64_t most) {
    count(part.steps, 1, 0);
    std::vector<Candidate *> chosen;
    for (Candidate &one : candidates)
      if (decide(one))
        chosen.push_back(&one);
    auto gain = [](const Candidate *one) { return one->saved - one->packed; };
    std::stable_sort(chosen.begin(), chosen.end(),
                     [&](auto *left, auto *right) { return gain(left) > gain(right); });
    PackPlan plan;
    std::vector<int64_t> placeOf(candidates.size(), -1);
    for (Candidate *one : chosen) {
      PackedOperand &operand = one->operand;
      if (operand.when != PackedOperand::When::load) {
        if (operand.bytes > most - plan.bytes)
          continue;
        operand.offset = plan.bytes;
        plan.bytes += operand.bytes;
      }
      const auto place = static_cast<int64_t>(plan.operands.size());
      placeOf[one - candidates.data()] = place;
      plan.operands.push_back(operand);
      for (const GemmStep *product : one->products)
        plan.ofProduct[product] = place;
    }
    shareBlocks(plan, most);
    for (const auto &[step, written] : writes)
      for (int64_t candidate : written)
        if (placeOf[candidate] >= 0)
          plan.writtenBy[step].push_back(placeOf[candidate]);
    return plan;
  }

private:
  static constexpr int64_t kFewRows = 128;     ///< f32
  static constexpr int64_t kFewHalfRows = 256; ///< bf16: from there on packing is little of it
  static constexpr int64_t kLeastBytes = 1 << 14;
  static constexpr int64_t kLeast = 16; ///< columns and summands
  static constexpr double kUnknownTrips = 8;
  static constexpr int64_t kDeepest = 4; ///< loops in loops whose second trip is looked at

  static int64_t rowsOf(const GemmStep &gemm) { return gemm.m * gemm.batch; }

  static bool isPackable(const GemmStep &gemm) {
    const bool isHalf = gemm.dtype == DType::bf16;
    return (isHalf || gemm.dtype == DType::f32) && (gemm.batch == 1 || gemm.strideB == 0) &&
           gemm.m > 0 && gemm.n >= kLeast && gemm.k >= kLeast &&
           gemm.n * gemm.k * sizeOf(gemm.dtype) >= kLeastBytes;
  }

  /// Products whose blocks of rows share an operand pack it once for all of them: packing
  /// transposed columns for each block takes a tenth of the time of 256 rows. It saves little, so
  /// it may take little of the arena.
  void shareBlocks(PackPlan &plan, int64_t most) const {
    constexpr int64_t kLeastShared = 1 << 18, kMostShared = 1 << 24; // bytes
    constexpr int64_t kPartOfArena = 64;
    most = std::min(most, plan.bytes + (part.arenaBytes - part.packedBytes) / kPartOfArena);
    int64_t shared = 0;
    for (const Candidate &one : candidates)
      for (const GemmStep *product : one.products) {
        const int64_t bytes = one.operand.bytes;
        if (plan.ofProduct.contains(product) || product->dtype != DType::f32 || !product->transB ||
            product->batch != 1 || cutGemm(*product).byRows < 2 || bytes < kLeastShared ||
            bytes > std::min(kMostShared, most - plan.bytes))
          continue;
        plan.ofProduct[product] = static_cast<int64_t>(plan.operands.size());
        plan.operands.push_back({PackedOperand::When::product, *product, plan.bytes, bytes});
        shared = std::max(shared, bytes);
      }
    plan.bytes += shared;
  }

  /// Packings that a product saves.
  double saving(const GemmStep &gemm, bool isConstant) const {
    const int64_t rows = rowsOf(gemm);
    if (gemm.dtype == DType::bf16)
      return rows <= kFewHalfRows || isConstant ? 1 : 0;
    if (rows > kFewRows)
      return gemm.transB && isConstant ? 0.5 : 0;
    if (gemm.transB)
      return rows >= 8 ? 0.6 : 0.1;
    return 0.1;
  }

  void add(const GemmStep &gemm) {
    const Slot &slot = part.slots[gemm.b];
    // Before constants are laid out they have no offsets.
    const bool isConstant = slot.space == Slot::Space::constant;
    Key key{slot.space, isConstant ? gemm.b : slot.offset, gemm.dtype, gemm.n, gemm.k, gemm.ldb,
            gemm.transB};
    auto known = std::find(keys.begin(), keys.end(), key);
    const auto index = static_cast<size_t>(known - keys.begin());
    if (known == keys.end()) {
      keys.push_back(key);
      Candidate &made = candidates.emplace_back();
      made.operand.product = gemm;
      made.operand.bytes = packedBytes(gemm.dtype, gemm.k, gemm.n);
      made.slot = &slot;
    }
    candidates[index].products.push_back(&gemm);
    candidateOf[&gemm] = index;
  }

  void addWrites(const Step &step) {
    for (int64_t written : writtenSlots(step)) {
      const Slot &slot = part.slots[written];
      for (size_t i = 0; i < candidates.size(); ++i) {
        const Slot &mine = *candidates[i].slot;
        if (mine.space == Slot::Space::arena && mine.offset < slot.offset + slot.bytes &&
            slot.offset < mine.offset + mine.bytes)
          writes[&step].push_back(static_cast<int64_t>(i));
      }
    }
  }

  /// Counts products and packings of a list that runs `times`; the second trip of a loop stands for
  /// all that follow.
  void count(const StepList &steps, double times, int64_t depth) {
    auto repeat = [&](double trips, auto &&run) {
      if (trips <= 1 || depth > kDeepest)
        return run(times * trips);
      run(times);
      run(times * (trips - 1));
    };
    for (const Step &step : steps) {
      if (auto *gemm = std::get_if<GemmStep>(&step.action))
        count(*gemm, times);
      else if (auto *loop = std::get_if<LoopStep>(&step.action))
        repeat(tripsOf(*loop), [&](double inside) { count(loop->body, inside, depth + 1); });
      else if (auto *loop = std::get_if<WhileStep>(&step.action))
        repeat(kUnknownTrips, [&](double inside) {
          count(loop->before, inside, depth + 1);
          count(loop->body, inside, depth + 1);
        });
      else if (auto *branch = std::get_if<IfStep>(&step.action)) {
        count(branch->thenSteps, times, depth);
        count(branch->elseSteps, times, depth);
      }
      if (auto found = writes.find(&step); found != writes.end())
        for (int64_t candidate : found->second)
          candidates[candidate].isFresh = false;
    }
  }

  void count(const GemmStep &gemm, double times) {
    auto found = candidateOf.find(&gemm);
    if (found == candidateOf.end())
      return;
    Candidate &one = candidates[found->second];
    const bool isConstant = one.slot->space == Slot::Space::constant;
    one.saved += times * saving(gemm, isConstant);
    if (!one.isFresh && !isConstant)
      one.packed += times;
    one.isFresh = true;
  }

  static double tripsOf(const LoopStep &loop) {
    if (loop.lower.slot || loop.upper.slot || loop.step.slot || loop.step.value <= 0)
      return kUnknownTrips;
    const int64_t length = loop.upper.value - loop.lower.value;
    return static_cast<double>(
        std::max<int64_t>(0, (length + loop.step.value - 1) / loop.step.value));
  }

  bool decide(Candidate &one) const {
    constexpr double kLeastGain = 0.1; // of what is packed
    if (one.saved - one.packed <= kLeastGain * one.packed)
      return false;
    if (one.slot->space == Slot::Space::arena)
      return true;
    // A constant is small beside one for each device.
    if (isReadByOthers(one))
      return program.parts.size() == 1 && program.numDevices() == 1;
    one.operand.when = PackedOperand::When::load;
    return true;
  }

  /// Whether anything but its products reads the slot of a constant.
  bool isReadByOthers(const Candidate &one) const {
    const int64_t slot = one.operand.product.b;
    const bool isResult =
        std::any_of(program.results.begin(), program.results.end(), [&](const Result &result) {
          return &program.parts[result.home.part] == &part && result.home.slot == slot;
        });
    return isResult || reads[slot] != static_cast<int64_t>(one.products.size());
  }

  const Program &program;
  const Part &part;
  std::vector<Key> keys;
  std::vector<Candidate> candidates;
  std::vector<int64_t> reads; ///< of each slot
  std::unordered_map<const GemmStep *, size_t> candidateOf;
  std::unordered_map<const Step *, std::vector<int64_t>> writes;
};

} // namespace

PackPlan planPacking(const Program &program, const Part &part, int64_t most) {
  return Planner(program, part).plan(most);
}

std::vector<PackPlan> planPacking(const Program &program) {
  std::vector<PackPlan> plans;
  for (const Part &part : program.parts) {
    plans.push_back(planPacking(program, part, part.packedBytes));
    std::erase_if(plans.back().ofProduct,
                  [](const auto &one) { return !multipliesPanels(one.first->dtype); });
  }
  return plans;
}

} // namespace tessera::runtime
