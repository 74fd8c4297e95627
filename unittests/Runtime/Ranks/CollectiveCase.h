//===- CollectiveCase.h - Collectives with expected results -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The suite of collectives: the inputs of each rank, generated from a seed, and its
// expected results, computed without messages.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_UNITTESTS_RUNTIME_RANKS_COLLECTIVECASE_H
#define TESSERA_UNITTESTS_RUNTIME_RANKS_COLLECTIVECASE_H

#include "Execution/Reduce.h"
#include "Ranks/Algorithm.h"

#include <cstring>
#include <numeric>
#include <string>

namespace tessera::runtime::test {

using Bytes = std::vector<std::byte>;
using sharding::CollectiveKind;
using sharding::ReduceKind;

inline constexpr CollectiveKind kKinds[] = {
    CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
    CollectiveKind::all_to_all, CollectiveKind::broadcast,  CollectiveKind::scatter,
    CollectiveKind::gather,     CollectiveKind::reduce};

inline bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter ||
         kind == CollectiveKind::reduce;
}

struct CollectiveCase {
  CollectiveKind kind = CollectiveKind::all_reduce;
  DType dtype = DType::f32;
  ReduceKind reduction = ReduceKind::sum;
  int64_t ranks = 1, root = 0;
  int64_t count = 0;   ///< all_reduce, reduce, broadcast: of the buffer; others: of a rank, roughly
  bool uneven = false; ///< of the others: ranks have different counts, some none
  /// Small integers, whose sums are exact in any order; otherwise NaN and all magnitudes.
  bool exact = false;
  std::vector<int64_t> hosts = {};

  double scale() const {
    return reduction == ReduceKind::avg ? 1.0 / static_cast<double>(ranks) : 1;
  }
  int64_t countOf(int64_t rank) const {
    return uneven ? (rank * 5 + count) % (2 * count + 1) : count;
  }
  /// all_to_all: what `from` sends to `to`.
  int64_t countOf(int64_t from, int64_t to) const {
    return uneven ? (from * 3 + to * 5 + count) % (2 * count + 1) : count;
  }
  bool isWhole() const {
    return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce ||
           kind == CollectiveKind::broadcast;
  }
  PlanRequest request(int64_t rank) const {
    PlanRequest made{kind, rank, ranks, root, {}, {}, hosts};
    if (isWhole())
      made.counts = {count};
    for (int64_t other = 0; other < ranks && !isWhole(); ++other) {
      bool pairs = kind == CollectiveKind::all_to_all;
      made.counts.push_back(pairs ? countOf(rank, other) : countOf(other));
      if (pairs)
        made.receives.push_back(countOf(other, rank));
    }
    return made;
  }
  static int64_t sum(const std::vector<int64_t> &counts) {
    return std::accumulate(counts.begin(), counts.end(), int64_t(0));
  }
  int64_t inputCount(int64_t rank) const {
    PlanRequest r = request(rank);
    bool own = kind == CollectiveKind::all_gather || kind == CollectiveKind::gather;
    return own ? r.counts[rank] : sum(r.counts);
  }
  int64_t outputCount(int64_t rank) const {
    PlanRequest r = request(rank);
    bool own = kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::scatter;
    return own ? r.counts[rank] : sum(kind == CollectiveKind::all_to_all ? r.receives : r.counts);
  }
  /// Whether a rank has a result.
  bool gets(int64_t rank) const {
    return (kind != CollectiveKind::gather && kind != CollectiveKind::reduce) || rank == root;
  }

  Bytes inputOf(int64_t rank) const {
    int64_t size = sizeOf(dtype), elements = inputCount(rank);
    Bytes bytes(static_cast<size_t>(elements * size));
    uint64_t state = static_cast<uint64_t>(rank) * 7919 + static_cast<uint64_t>(count) + 1;
    for (int64_t i = 0; i < elements; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      auto random = static_cast<int64_t>(state >> 40);
      double value = exact ? static_cast<double>(random % 3) - 1
                           : static_cast<double>(random % 2001 - 1000) / (1 << (random % 9));
      ElementBytes element = elementOf(dtype, value);
      if (!exact && isFloat(dtype) && random % 37 == 0)
        element = elementOf(dtype, std::numeric_limits<double>::quiet_NaN());
      std::memcpy(&bytes[static_cast<size_t>(i * size)], element.data(), static_cast<size_t>(size));
    }
    return bytes;
  }

  /// The results of all ranks; empty for ranks without a result.
  std::vector<Bytes> results() const {
    std::vector<Bytes> inputs, results(static_cast<size_t>(ranks));
    for (int64_t rank = 0; rank < ranks; ++rank)
      inputs.push_back(inputOf(rank));
    auto part = [&](const Bytes &of, int64_t begin, int64_t elements) {
      auto at = of.begin() + begin * sizeOf(dtype);
      return Bytes(at, at + elements * sizeOf(dtype));
    };
    Bytes total = reduces(kind) ? sumOf(inputs) : Bytes();
    for (int64_t rank = 0; rank < ranks; ++rank) {
      if (!gets(rank))
        continue;
      Bytes &result = results[rank];
      std::vector<int64_t> counts = request(rank).counts;
      int64_t before = isWhole() ? 0 : sum({counts.begin(), counts.begin() + rank});
      if (kind == CollectiveKind::reduce_scatter)
        result = part(total, before, counts[rank]);
      else if (reduces(kind))
        result = total;
      else if (kind == CollectiveKind::broadcast)
        result = inputs[root];
      else if (kind == CollectiveKind::scatter)
        result = part(inputs[root], before, counts[rank]);
      else
        for (int64_t from = 0; from < ranks; ++from) {
          Bytes piece = inputs[from];
          if (kind == CollectiveKind::all_to_all) {
            std::vector<int64_t> sends = request(from).counts;
            piece = part(inputs[from], sum({sends.begin(), sends.begin() + rank}), sends[rank]);
          }
          result.insert(result.end(), piece.begin(), piece.end());
        }
    }
    return results;
  }

  std::string text() const {
    return std::string(toString(kind)) + " of " + std::to_string(count) +
           (uneven ? " uneven " : " ") + std::string(toString(dtype)) + " by " +
           std::string(toString(reduction)) + ", " + std::to_string(ranks) + " ranks, root " +
           std::to_string(root);
  }

private:
  Bytes sumOf(const std::vector<Bytes> &inputs) const {
    Bytes total(inputs[0].size());
    int64_t size = sizeOf(dtype), elements = static_cast<int64_t>(total.size()) / size;
    for (int64_t at = 0; at < elements; at += kReduceChunk) {
      std::vector<const std::byte *> sources;
      for (const Bytes &each : inputs)
        sources.push_back(each.data() + at * size);
      reduceFunction(dtype, reduction)(sources.data(), ranks, std::min(kReduceChunk, elements - at),
                                       scale(), total.data() + at * size);
    }
    return total;
  }
};

} // namespace tessera::runtime::test

#endif // TESSERA_UNITTESTS_RUNTIME_RANKS_COLLECTIVECASE_H
