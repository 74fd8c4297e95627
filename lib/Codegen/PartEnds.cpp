//===- PartEnds.cpp - Arguments, results and the arena of a part ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FunctionEnds.h"
#include "PartEmitter.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

dist::ShardingAttr PartEmitter::layoutOf(DictionaryAttr attributes, Type type) {
  if (attributes)
    if (auto given = attributes.getAs<dist::ShardingAttr>(dist::DistDialect::kSharding))
      return given;
  sharding::Mesh mesh = dist::lookupMesh(part, part.getMeshAttr()).getMesh();
  return dist::ShardingAttr::get(
      part.getMeshAttr(), mesh,
      sharding::TensorSharding::replicated(cast<RankedTensorType>(type).getRank()),
      function.getContext());
}

std::optional<unsigned> PartEmitter::fedArgument(unsigned index) {
  auto feeds = function.getResultAttrOfType<IntegerAttr>(index, dist::DistDialect::kFeeds);
  if (!feeds)
    return std::nullopt;
  auto it = byOriginal.find(feeds.getInt());
  return it == byOriginal.end() ? std::nullopt : std::optional(it->second);
}

void PartEmitter::placeArguments() {
  // Arguments read again by the next step must be kept; those replaced by a result are free after
  // their last use.
  for (auto [index, argument] : llvm::enumerate(function.getArguments())) {
    Storage *storage = newStorage(argument.getType(), dist::argumentName(function, index));
    storage->writable = false;
    assignStorage(argument, storage, 0);
    storage->live(0, lives.end());
    argumentStorage.push_back(storage);
    byOriginal.try_emplace(originalArgument(function, index), index);
  }
  resultStorage.resize(function.getNumResults());
  auto back = cast<func::ReturnOp>(function.front().getTerminator());
  for (auto [index, value] : llvm::enumerate(back.getOperands()))
    if (std::optional<unsigned> fed = fedArgument(index)) {
      resultStorage[index] = argumentStorage[*fed];
      argumentStorage[*fed]->writable = true;
      preferStorage(value, argumentStorage[*fed]);
    }
}

LogicalResult PartEmitter::placeResults() {
  auto back = cast<func::ReturnOp>(function.front().getTerminator());
  for (auto [index, value] : llvm::enumerate(back.getOperands())) {
    auto feeds = function.getResultAttrOfType<IntegerAttr>(index, dist::DistDialect::kFeeds);
    std::string name = dist::resultName(function, index);
    if (!feeds)
      continue;
    std::optional<unsigned> fed = fedArgument(index);
    if (!fed)
      return back.emitError() << "result '" << name << "' feeds argument " << feeds.getInt()
                              << ", which is not in the same part; send it there first";
    if (layoutOf(function.getResultAttrDict(index), value.getType()) !=
            layoutOf(function.getArgAttrDict(*fed), value.getType()) ||
        function.getArgumentTypes()[*fed] != value.getType())
      return back.emitError() << "result '" << name << "' feeds argument '"
                              << dist::argumentName(function, *fed)
                              << "' with another layout; reshard it first";
  }
  // A result in the target buffer of another one must move first.
  SmallVector<Storage *> targets(resultStorage.begin(), resultStorage.end());
  for (auto [index, value] : llvm::enumerate(back.getOperands()))
    if (!targets[index] && llvm::is_contained(resultStorage, placeOf(value).storage)) {
      targets[index] = newStorage(value.getType(), dist::resultName(function, index));
      targets[index]->live(lives.end(), lives.end());
    }
  moveAtEnd(back, back.getOperands(), targets);
  for (auto [value, target] : llvm::zip_equal(back.getOperands(), targets))
    resultSlots.push_back(target ? slotOf(target, 0, value.getType()) : slotOf(value));
  return success();
}

void PartEmitter::emitHomes() {
  for (auto [index, argument] : llvm::enumerate(function.getArguments()))
    rt::ArgumentHomeOp::create(homes, argument.getLoc(), originalArgument(function, index),
                               slotOf(argumentStorage[index], 0, argument.getType()),
                               layoutOf(function.getArgAttrDict(index), argument.getType()));
  for (auto [index, slot] : llvm::enumerate(resultSlots))
    rt::ResultHomeOp::create(
        homes, function.getLoc(), originalResult(function, index), slot,
        layoutOf(function.getResultAttrDict(index), function.getResultTypes()[index]));
}

/// Limit on a step's offsets, also in the runtime.
static constexpr int64_t kMaxArena = int64_t(1) << 48;

LogicalResult PartEmitter::plan() {
  auto tooLarge = [&]() {
    return function.emitError() << "'" << function.getSymName()
                                << "' needs more than 2^48 bytes per device";
  };
  std::vector<Buffer *> buffers;
  int64_t left = std::numeric_limits<int64_t>::max() / 2; // offsets do not overflow
  for (Storage &storage : storages)
    if (!storage.slots.empty()) {
      buffers.push_back(&storage);
      if (storage.bytes > left)
        return tooLarge();
      left -= storage.bytes;
    }
  int64_t arena = planArena(buffers, reuse);
  if (arena > kMaxArena)
    return tooLarge();
  part.setArenaBytes(arena);
  for (Storage &storage : storages)
    for (auto [slot, distance] : storage.slots)
      slot.setOffset(storage.offset + distance);
  return success();
}

LogicalResult PartEmitter::emit() {
  placeArguments();
  if (failed(emitBlock(function.front())) || failed(placeResults()))
    return failure();
  emitHomes();
  if (failed(plan()))
    return failure();
  Block &first = part.getBody().front();
  while (!llvm::hasSingleElement(part.getBody())) {
    Block &next = *std::next(part.getBody().begin());
    first.getOperations().splice(first.end(), next.getOperations());
    next.erase();
  }
  return success();
}
