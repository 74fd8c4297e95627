//===- GpuEmitter.cpp - What one thread of a launch does ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuEmitter.h"

#include "../CPU/KernelLanes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace tessera::codegen {

/// The widest access of a GPU.
static constexpr int64_t kAccessBytes = 16;
/// Registers that one chunk of all operands may take, in bytes.
static constexpr int64_t kHeldBytes = 256;

//===----------------------------------------------------------------------===//
// Index arithmetic
//===----------------------------------------------------------------------===//

Value GpuEmitter::constant(int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

Value GpuEmitter::add(Value left, Value right) {
  if (!left || !right)
    return left ? left : right;
  return arith::AddIOp::create(b, loc, left, right, arith::IntegerOverflowFlags::nsw);
}

Value GpuEmitter::add(Value left, int64_t right) {
  return right == 0 ? left : add(left, constant(right));
}

Value GpuEmitter::multiply(Value left, int64_t right) {
  if (right == 1)
    return left;
  return arith::MulIOp::create(b, loc, left, constant(right), arith::IntegerOverflowFlags::nsw);
}

/// Indices of a launch are below 2^31 (GpuLaunches.cpp sees to it): a division of 32 bits is
/// several times as fast.
static Value narrowly(OpBuilder &b, Location loc, Value left, int64_t right, bool quotient) {
  Type i32 = b.getI32Type();
  Value a = arith::IndexCastUIOp::create(b, loc, i32, left);
  Value d = arith::ConstantIntOp::create(b, loc, right, 32);
  Value result = quotient ? arith::DivUIOp::create(b, loc, a, d).getResult()
                          : arith::RemUIOp::create(b, loc, a, d).getResult();
  return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), result);
}

Value GpuEmitter::divide(Value left, int64_t right) {
  return right == 1 ? left : narrowly(b, loc, left, right, /*quotient=*/true);
}

Value GpuEmitter::remainder(Value left, int64_t right) {
  return right == 1 ? constant(0) : narrowly(b, loc, left, right, /*quotient=*/false);
}

Value GpuEmitter::evaluate(const FlatAccess &access, Value at) {
  Value result;
  int64_t below = 1;
  for (auto [i, dim] : llvm::enumerate(access.dims)) {
    if (dim.step != 0) {
      Value digit = divide(at, below);
      if (i + 1 < access.dims.size())
        digit = remainder(digit, dim.extent);
      result = add(result, multiply(digit, dim.step));
    }
    below *= dim.extent;
  }
  return result;
}

Value GpuEmitter::digit(ArrayRef<int64_t> extents, unsigned place, const Chunk &chunk) {
  int64_t below = 1, extent = extents[place];
  for (int64_t inner : extents.drop_front(place + 1))
    below *= inner;
  bool outermost = place == 0;
  auto scalar = [&](Value at) {
    Value quotient = divide(at, below);
    return outermost ? quotient : remainder(quotient, extent);
  };
  if (chunk.lanes == 0 || (below % chunk.lanes == 0 && !chunk.shifted))
    return scalar(chunk.at);
  auto type = VectorType::get(chunk.lanes, b.getIndexType());
  SmallVector<int64_t> steps = llvm::to_vector(llvm::seq<int64_t>(0, chunk.lanes));
  auto splat = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, b.getIndexAttr(value)));
  };
  Value lanes = arith::ConstantOp::create(b, loc, b.getIndexVectorAttr(steps));
  bool together = below == 1 && !chunk.shifted && (outermost || extent % chunk.lanes == 0);
  Value first = together ? scalar(chunk.at) : chunk.at;
  Value all =
      arith::AddIOp::create(b, loc, vector::BroadcastOp::create(b, loc, type, first), lanes);
  if (together) {
    consecutive[all] = first;
    return all;
  }
  if (chunk.full) {
    all = arith::MaxSIOp::create(b, loc, all, splat(0));
    all = arith::MinSIOp::create(b, loc, all, splat(chunk.volume - 1));
  }
  if (below != 1)
    all = arith::DivUIOp::create(b, loc, all, splat(below));
  return outermost ? all : arith::RemUIOp::create(b, loc, all, splat(extent)).getResult();
}

Value GpuEmitter::indexOf(const GpuMember &member, unsigned loop, const Chunk &chunk) {
  int c = member.classOf[loop];
  if (c >= 0) {
    if (!group.rows)
      return digit(group.extents, c, chunk);
    Chunk here;
    here.at = row;
    return digit(group.extents, c, here);
  }
  if (member.extents[loop] == 1)
    return constant(0);
  if (!group.rows)
    return ownIndex[loop];
  SmallVector<unsigned> own = GpuGroup::ownLoops(member);
  SmallVector<int64_t> extents;
  for (unsigned l : own)
    extents.push_back(member.extents[l]);
  return digit(extents, llvm::find(own, loop) - own.begin(), chunk);
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

FlatAccess GpuEmitter::outerOf(const GpuMember &member, const GpuAccess &access) const {
  return FlatAccess::get(access, member.extents,
                         GpuGroup::classLoops(member, group.extents.size()));
}

FlatAccess GpuEmitter::innerOf(const GpuMember &member, const GpuAccess &access) const {
  return FlatAccess::get(access, member.extents, GpuGroup::ownLoops(member));
}

bool GpuEmitter::isAligned(const GpuMember &member, const GpuAccess &access, int64_t lanes) const {
  if (access.view && access.divisor % lanes != 0)
    return false;
  FlatAccess outer = outerOf(member, access), inner = innerOf(member, access);
  const FlatAccess &along = group.rows ? inner : outer, &other = group.rows ? outer : inner;
  if (!along.isContiguous(lanes) || access.base % lanes != 0)
    return false;
  auto fits = [&](const FlatAccess::Dim &dim) { return dim.step % lanes == 0; };
  return llvm::all_of(llvm::drop_begin(along.dims), fits) && llvm::all_of(other.dims, fits);
}

bool GpuEmitter::isAligned(const GpuMember &member, const GpuAccess &access,
                           const Chunk &chunk) const {
  if (!chunk.shifted)
    return isAligned(member, access, chunk.lanes);
  // As far from a whole address as the leading access, in every row.
  const Space &space = spaces.at(chunk.volume);
  if (access.view != space.leading->view && access.view && access.divisor % chunk.lanes != 0)
    return false;
  if (space.leading->view && access.view != space.leading->view &&
      space.leading->divisor % chunk.lanes != 0)
    return false;
  FlatAccess inner = innerOf(member, access);
  if (inner.dims.size() != 1 || inner.dims[0].step != 1 ||
      (access.base - space.leading->base) % chunk.lanes != 0)
    return false;
  unsigned classes = group.extents.size();
  for (auto [mine, theirs] : llvm::zip_equal(GpuGroup::classLoops(member, classes),
                                             GpuGroup::classLoops(*space.leader, classes)))
    if ((access.step[mine] - space.leading->step[theirs]) % chunk.lanes != 0)
      return false;
  return true;
}

int64_t GpuEmitter::lanesFor(ArrayRef<const GpuMember *> members, int64_t volume) const {
  int64_t least = kAccessBytes, most = 1, held = 0;
  std::set<Key> keys;
  for (const GpuMember *member : members)
    for (const GpuAccess &access : member->accesses)
      if (!access.scalar && isAligned(*member, access, 1)) {
        int64_t bytes = bytesOf(access.element);
        least = std::min(least, bytes);
        most = std::max(most, bytes);
        if (keys.insert(keyOf(*member, access, Chunk())).second)
          held += std::max<int64_t>(4, bytes);
      }
  // 16 bytes of the narrowest, unless that is too much of the others.
  int64_t lanes = kAccessBytes / least;
  while (lanes > 2 * kAccessBytes / most && lanes * held > kHeldBytes)
    lanes /= 2;
  // The largest operand must fit; smaller ones are read from caches anyway.
  int64_t largest = 0;
  for (const GpuMember *member : members)
    for (const GpuAccess &access : member->accesses)
      if (!access.scalar && isAligned(*member, access, 1))
        largest = std::max(largest, elementsOf(*member, access) * bytesOf(access.element));
  for (; lanes > 1; lanes /= 2) {
    if (group.rows ? volume % lanes != 0 : volume < lanes)
      continue;
    for (const GpuMember *member : members)
      for (const GpuAccess &access : member->accesses)
        if (!access.scalar && isAligned(*member, access, lanes) &&
            elementsOf(*member, access) * bytesOf(access.element) == largest)
          return lanes;
  }
  return 0;
}

int64_t GpuEmitter::elementsOf(const GpuMember &member, const GpuAccess &access) const {
  int64_t elements = 1;
  for (auto [extent, step] : llvm::zip_equal(member.extents, access.step))
    if (step != 0)
      elements *= extent;
  return std::min(elements, cast<MemRefType>(access.root.getType()).getNumElements());
}

void GpuEmitter::countLoad(const GpuMember &member, const GpuAccess &access) {
  info.readBytes += elementsOf(member, access) * bytesOf(access.element);
}

void GpuEmitter::countStore(const GpuMember &member, const GpuAccess &access) {
  info.writtenBytes += elementsOf(member, access) * bytesOf(access.element);
}

GpuEmitter::Key GpuEmitter::keyOf(const GpuMember &member, const GpuAccess &access,
                                  const Chunk &chunk) const {
  Key key;
  key.root = access.root.getAsOpaquePointer();
  key.view = access.view ? access.view.getAsOpaquePointer() : nullptr;
  key.base = access.base;
  key.outer = outerOf(member, access).dims;
  key.inner = innerOf(member, access).dims;
  const auto &along = group.rows ? key.inner : key.outer;
  key.vector = !along.empty();
  key.volume = key.vector ? chunk.volume : 1;
  key.chunk = key.vector ? chunk.number : -1;
  return key;
}

Value GpuEmitter::address(const GpuMember &member, const GpuAccess &access, const Chunk &chunk,
                          int64_t lane) {
  Value result;
  FlatAccess outer = outerOf(member, access), inner = innerOf(member, access);
  auto clamp = [&](Value at) -> Value {
    at = arith::MaxSIOp::create(b, loc, at, constant(0));
    return arith::MinSIOp::create(b, loc, at, constant(chunk.volume - 1));
  };
  if (group.rows) {
    if (!outer.isUniform())
      result = evaluate(outer, row);
    if (!inner.isUniform())
      result = add(result, evaluate(inner, chunk.clamped ? clamp(add(chunk.at, lane))
                                                         : add(chunk.at, lane)));
  } else {
    if (!outer.isUniform())
      result = evaluate(outer, add(chunk.at, lane));
    for (unsigned loop : GpuGroup::ownLoops(member))
      if (access.step[loop] != 0)
        result = add(result, multiply(ownIndex[loop], access.step[loop]));
  }
  if (access.view)
    result = add(result, dynamicOffsets[access.view]);
  return result ? add(result, access.base) : constant(access.base);
}

void GpuEmitter::note(Value root, bool store, int64_t bytes, StringRef why) {
  auto argument = dyn_cast<BlockArgument>(root);
  std::string name = argument ? ("argument " + Twine(argument.getArgNumber())).str()
                     : root.getDefiningOp<memref::GetGlobalOp>() ? "a constant"
                                                                 : "a temporary";
  std::string text =
      ((store ? "writes " : "reads ") + name + " by " + Twine(8 * bytes) + " bits: " + why).str();
  if (!llvm::is_contained(info.narrow, text))
    info.narrow.push_back(text);
}

/// Says why a vector of 16 bytes cannot be had.
void GpuEmitter::noteNarrow(const GpuMember &member, const GpuAccess &access, bool store,
                            const Chunk &chunk) {
  FlatAccess outer = outerOf(member, access), inner = innerOf(member, access);
  const FlatAccess &along = group.rows ? inner : outer, &other = group.rows ? outer : inner;
  int64_t bytes = bytesOf(access.element), wish = kAccessBytes / bytes;
  bool aligned = chunk.lanes && isAligned(member, access, chunk);
  if (aligned && chunk.lanes >= wish) {
    if (chunk.full)
      note(access.root, store, bytes, "where a row begins and ends");
    return;
  }
  int64_t width = aligned ? chunk.lanes * bytes : bytes;
  auto say = [&](const Twine &why) { note(access.root, store, width, why.str()); };
  if (along.isUniform() || along.isRepeated(std::max<int64_t>(2, chunk.lanes)))
    return say(group.rows && along.isUniform() ? "one element a row" : "one element for several");
  if (along.dims[0].step != 1)
    return say("elements " + Twine(along.dims[0].step) + " apart");
  if (along.dims[0].extent % wish != 0 && (along.dims.size() > 1 || group.rows))
    return say("runs of " + Twine(along.dims[0].extent) + " elements");
  if (access.view && access.divisor % wish != 0)
    return say("an offset that is known only at run time");
  if (access.base % wish != 0)
    return say("begins at element " + Twine(access.base));
  for (const FlatAccess::Dim &dim : llvm::concat<const FlatAccess::Dim>(
           llvm::drop_begin(along.dims), ArrayRef<FlatAccess::Dim>(other.dims)))
    if (dim.step % wish != 0)
      return say("runs " + Twine(dim.step) + " elements apart");
  if (along.elements() < wish)
    return say("only " + Twine(along.elements()) + " elements");
  say("other operands allow no more lanes");
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Before memory is accessed by `key`: what other threads do to the same elements by other keys is
/// over.
void GpuEmitter::settle(const Key &key, Value root, bool writing) {
  Key mine = key;
  mine.chunk = 0;
  auto others = [&](const std::set<Key> &keys) {
    return llvm::any_of(keys, [&](const Key &k) { return k < mine || mine < k; });
  };
  void *memory = root.getAsOpaquePointer();
  if (group.rows && (others(storedBy[memory]) || (writing && others(loadedBy[memory])))) {
    gpu::BarrierOp::create(b, loc);
    storedBy.clear();
    loadedBy.clear();
  }
  (writing ? storedBy : loadedBy)[memory].insert(mine);
}

Value GpuEmitter::load(const GpuMember &member, const GpuAccess &access, const Chunk &chunk) {
  if (access.scalar)
    return launch.mapping.lookup(access.operand->get());
  Key key = keyOf(member, access, chunk);
  if (auto it = cache.find(key); it != cache.end())
    return it->second;
  if (inLoop && group.rows && key.vector) {
    Slot *slot = slotOf(key);
    if (slot && slot->filled)
      return cache[key] = loadSlot(*slot, access.element, chunk);
    if (const GpuMember *producer = producerOf(key)) {
      computeAgain(*producer, chunk);
      return cache.at(key);
    }
    if (slot) {
      Value value = widen(b, loc, loadMemory(member, access, chunk, key), chunk.lanes);
      storeSlot(*slot, value, chunk);
      return cache[key] = value;
    }
  }
  if (auto tiled = staged.find(key); tiled != staged.end())
    return cache[key] = loadStaged(tiled->second, access.element, chunk);
  return cache[key] = loadMemory(member, access, chunk, key);
}

Value GpuEmitter::loadMemory(const GpuMember &member, const GpuAccess &access, const Chunk &chunk,
                             const Key &key) {
  flush(access.root);
  settle(key, access.root, /*writing=*/false);
  if (key.chunk <= 0)
    countLoad(member, access);
  noteNarrow(member, access, /*store=*/false, chunk);
  Value memory = launch.flat(access.root, /*write=*/false);
  FlatAccess along = group.rows ? innerOf(member, access) : outerOf(member, access);
  auto type = VectorType::get(std::max<int64_t>(1, chunk.lanes), access.element);
  auto together = [&]() -> Value {
    int64_t bytes = std::min(kAccessBytes, chunk.lanes * bytesOf(access.element));
    return vector::LoadOp::create(b, loc, type, memory,
                                  ValueRange{address(member, access, chunk, 0)},
                                  /*nontemporal=*/false, llvm::MaybeAlign(bytes));
  };
  auto apart = [&]() -> Value {
    Chunk edge = chunk;
    edge.clamped = static_cast<bool>(chunk.full);
    Values lanes;
    for (int64_t lane = 0; lane < chunk.lanes; ++lane)
      lanes.push_back(memref::LoadOp::create(b, loc, memory, address(member, access, edge, lane)));
    return vector::FromElementsOp::create(b, loc, type, lanes);
  };
  Value value;
  if (chunk.lanes == 0 || (chunk.shifted ? along.isUniform() : along.isRepeated(chunk.lanes))) {
    value = memref::LoadOp::create(b, loc, memory, address(member, access, chunk, 0));
  } else if (!isAligned(member, access, chunk)) {
    value = apart();
  } else if (!chunk.full) {
    value = together();
  } else {
    auto branch = scf::IfOp::create(b, loc, TypeRange(type), chunk.full, /*withElse=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(b, loc, together());
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, loc, apart());
    value = branch.getResult(0);
  }
  return value;
}

void GpuEmitter::store(const GpuMember &member, const GpuAccess &access, const Chunk &chunk,
                       Value value) {
  Key key = keyOf(member, access, chunk);
  if (key.vector)
    value = widen(b, loc, value, chunk.lanes);
  if (inLoop && group.rows && key.vector) {
    cache[key] = value;
    Slot *slot = slotOf(key);
    if (slot)
      storeSlot(*slot, value, chunk);
    if (live(access.root) || (!slot && !producerOf(key)))
      storeNow(member, access, chunk, value);
    return;
  }
  if (inLoop) {
    storeNow(member, access, chunk, value);
    if (group.rows)
      cache[key] = value;
    return;
  }
  cache[key] = value;
  Pending store{&member, &access, chunk, value};
  for (auto &[known, waiting] : pending)
    if (!(known < key) && !(key < known)) {
      waiting = store;
      return;
    }
  // Elements that wait under another key must be written first.
  bool other = llvm::any_of(pending, [&](const std::pair<Key, Pending> &entry) {
    Key known = entry.first, mine = key;
    known.chunk = mine.chunk = 0;
    return known.root == mine.root && (known < mine || mine < known);
  });
  if (other)
    flush(access.root);
  // What was loaded under other keys is no longer what memory will hold.
  for (auto it = cache.begin(); it != cache.end();) {
    Key known = it->first, mine = key;
    known.chunk = mine.chunk = 0;
    bool stale = known.root == mine.root && (known < mine || mine < known);
    it = stale ? cache.erase(it) : std::next(it);
  }
  pending.emplace_back(key, store);
}

void GpuEmitter::storeNow(const GpuMember &member, const GpuAccess &access, const Chunk &chunk,
                          Value value) {
  Key key = keyOf(member, access, chunk);
  settle(key, access.root, /*writing=*/true);
  if (key.chunk <= 0)
    countStore(member, access);
  noteNarrow(member, access, /*store=*/true, chunk);
  Value memory = launch.flat(access.root, /*write=*/true);
  // Of a row's one element the team's first thread is in charge.
  Value condition = chunk.valid;
  if (group.rows) {
    if (!key.vector)
      condition = team > 1
                      ? arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lane, constant(0))
                      : Value();
    if (rowValid)
      condition =
          condition ? arith::AndIOp::create(b, loc, condition, rowValid).getResult() : rowValid;
  }
  OpBuilder::InsertionGuard guard(b);
  if (condition) {
    auto branch = scf::IfOp::create(b, loc, condition, /*withElse=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  auto type = dyn_cast<VectorType>(value.getType());
  auto apart = [&](Value inside) {
    for (int64_t lane = 0; lane < chunk.lanes; ++lane) {
      OpBuilder::InsertionGuard lanes(b);
      Value element = vector::ExtractOp::create(b, loc, value, lane);
      if (inside) {
        Value valid = vector::ExtractOp::create(b, loc, inside, lane);
        auto branch = scf::IfOp::create(b, loc, valid, /*withElse=*/false);
        b.setInsertionPointToStart(branch.thenBlock());
      }
      memref::StoreOp::create(b, loc, element, memory, address(member, access, chunk, lane));
    }
  };
  auto together = [&] {
    int64_t bytes = std::min(kAccessBytes, chunk.lanes * bytesOf(access.element));
    vector::StoreOp::create(b, loc, value, memory, ValueRange{address(member, access, chunk, 0)},
                            /*nontemporal=*/false, llvm::MaybeAlign(bytes));
  };
  Value inside = type && chunk.full ? within(chunk) : Value();
  if (!type) {
    memref::StoreOp::create(b, loc, value, memory, address(member, access, chunk, 0));
  } else if (!isAligned(member, access, chunk)) {
    apart(inside);
  } else if (!chunk.full) {
    together();
  } else {
    auto branch = scf::IfOp::create(b, loc, chunk.full, /*withElse=*/true);
    b.setInsertionPointToStart(branch.thenBlock());
    together();
    b.setInsertionPointToStart(branch.elseBlock());
    apart(inside);
  }
}

/// Writes what waits for `root`; for all that is needed after the launch when it is null.
void GpuEmitter::flush(Value root) {
  std::vector<std::pair<Key, Pending>> waiting = std::move(pending);
  pending.clear();
  for (auto &entry : waiting) {
    const Pending &store = entry.second;
    if (root && store.access->root != root)
      pending.push_back(entry);
    else if (root || live(store.access->root))
      storeNow(*store.member, *store.access, store.chunk, store.value);
  }
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

LogicalResult GpuEmitter::captureAll() {
  for (const GpuMember &member : group.members) {
    for (const GpuAccess &access : member.accesses) {
      Value value = access.scalar ? access.operand->get() : access.view;
      if (!value)
        continue;
      FailureOr<Value> captured = launch.capture(value);
      if (failed(captured))
        return failure();
      if (access.view && !dynamicOffsets.contains(access.view))
        dynamicOffsets[access.view] =
            memref::ExtractStridedMetadataOp::create(b, loc, *captured).getOffset();
    }
    WalkResult walk = member.op.getBody()->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        if (member.op.getRegion().isAncestor(operand.getParentRegion()))
          continue;
        if (failed(launch.capture(operand)))
          return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return failure();
  }
  for (Value root : launch.scalarReads)
    note(root, /*store=*/false, bytesOf(cast<MemRefType>(root.getType()).getElementType()),
         "a scalar");
  return success();
}

/// How many elements a body's load reads: one for each iteration of the loops that its indices
/// depend on.
static int64_t placesOf(const GpuMember &member, memref::LoadOp load) {
  SmallVector<bool> used(member.extents.size());
  SmallVector<Value> work(load.getIndices());
  llvm::DenseSet<Operation *> seen;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    Operation *def = value.getDefiningOp();
    if (!def) {
      // An element of an operand: its loops.
      auto argument = cast<BlockArgument>(value);
      for (const GpuAccess &access : member.accesses)
        if (member.op.getMatchingBlockArgument(access.operand) == argument)
          for (auto [loop, step] : llvm::enumerate(access.step))
            used[loop] = used[loop] || step != 0;
      continue;
    }
    if (auto index = dyn_cast<linalg::IndexOp>(def))
      used[index.getDim()] = true;
    if (def->getBlock() == member.op.getBody() && seen.insert(def).second)
      llvm::append_range(work, def->getOperands());
  }
  int64_t result = 1;
  for (auto [extent, counts] : llvm::zip_equal(member.extents, used))
    result *= counts ? extent : 1;
  return result;
}

/// The elements of a chunk that a body reads at computed places, when they lie side by side: rows
/// of a table. Null when they do not.
Value GpuEmitter::loadTogether(memref::LoadOp load, const IRMapping &mapping, const Chunk &chunk) {
  int64_t bytes = bytesOf(load.getType());
  auto fail = [&](int64_t width, StringRef why) {
    note(rootOf(load.getMemRef()), /*store=*/false, width, why);
    return Value();
  };
  Values at;
  for (Value index : load.getIndices())
    at.push_back(mapping.lookupOrDefault(index));
  auto isVector = [](Value value) { return isa<VectorType>(value.getType()); };
  if (chunk.lanes == 0 || llvm::none_of(at, isVector))
    return fail(bytes, "at one computed place");
  Value first = consecutive.lookup(at.back());
  SmallVector<int64_t> strides;
  int64_t offset;
  if (!first || llvm::any_of(ArrayRef(at).drop_back(), isVector) ||
      failed(load.getMemRefType().getStridesAndOffset(strides, offset)) || strides.back() != 1)
    return fail(bytes, "at computed places");
  auto fits = [&](int64_t step) { return !ShapedType::isDynamic(step) && step % chunk.lanes == 0; };
  if (!fits(offset) || !llvm::all_of(ArrayRef(strides).drop_back(), fits))
    return fail(bytes, "computed rows that begin anywhere");
  if (chunk.lanes * bytes < kAccessBytes)
    fail(chunk.lanes * bytes, "other operands allow no more lanes");
  at.back() = first;
  return vector::LoadOp::create(b, loc, VectorType::get(chunk.lanes, load.getType()),
                                mapping.lookupOrDefault(load.getMemRef()), at,
                                /*nontemporal=*/false,
                                llvm::MaybeAlign(std::min(kAccessBytes, chunk.lanes * bytes)));
}

GpuEmitter::Values GpuEmitter::body(const GpuMember &member, const Chunk &chunk,
                                    ValueRange accumulators) {
  linalg::GenericOp op = member.op;
  IRMapping mapping = launch.mapping;
  for (const GpuAccess &access : member.accesses) {
    BlockArgument argument = op.getMatchingBlockArgument(access.operand);
    if (!access.output && !argument.use_empty())
      mapping.map(argument, load(member, access, chunk));
  }
  unsigned next = 0;
  for (const NestOutput &output : member.outputs) {
    const GpuAccess &access = member.accesses[output.operand];
    BlockArgument argument = op.getMatchingBlockArgument(access.operand);
    if (output.accumulates)
      mapping.map(argument, accumulators[next++]);
    else if (output.readsOld)
      mapping.map(argument, load(member, access, chunk));
  }
  for (Operation &inner : op.getBody()->without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      mapping.map(index.getResult(), indexOf(member, index.getDim(), chunk));
      continue;
    }
    if (auto gathered = dyn_cast<memref::LoadOp>(inner)) {
      if (chunk.number <= 0)
        info.readBytes += placesOf(member, gathered) * bytesOf(gathered.getType());
      if (Value wide = loadTogether(gathered, mapping, chunk)) {
        mapping.map(gathered.getResult(), wide);
        continue;
      }
    }
    mapping.map(inner.getResult(0), cloneInLanes(b, inner, mapping, chunk.lanes));
  }
  Values results;
  Operation *yield = op.getBody()->getTerminator();
  SmallVector<Value> values;
  for (Value value : yield->getOperands())
    values.push_back(mapping.lookupOrDefault(value));
  for (auto [value, output] : llvm::zip_equal(values, member.outputs)) {
    if (output.accumulates)
      results.push_back(widen(b, loc, value, chunk.lanes));
    else
      store(member, member.accesses[output.operand], chunk, value);
  }
  return results;
}

FailureOr<GpuShape> GpuEmitter::emit() {
  if (failed(captureAll()))
    return failure();
  if (group.count() == 0)
    return GpuShape();
  info.scheme = GpuScheme::pointwise;
  for (const GpuMember &member : group.members)
    if (member.hasReduction() && !group.rows)
      info.scheme = GpuScheme::plain;
  if (group.tiles) {
    info.scheme = GpuScheme::permute;
    return emitPermute();
  }
  if (group.rows)
    info.scheme = GpuScheme::rows;
  return group.rows ? emitRows() : emitFlat();
}

} // namespace tessera::codegen
