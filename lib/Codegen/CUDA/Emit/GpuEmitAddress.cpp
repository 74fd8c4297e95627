//===- GpuEmitAddress.cpp - Addresses of an operand's chunks --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuEmitter.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace tessera::codegen {

/// Limit on the registers of one chunk of all operands, in bytes.
static constexpr int64_t kHeldBytes = 256;

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
  // In every row, the access must have the same misalignment as the leading access.
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
  // Use 16 bytes of the narrowest operand, unless the others then take too many registers.
  int64_t lanes = kAccessBytes / least;
  while (lanes > 2 * kAccessBytes / most && lanes * held > kHeldBytes)
    lanes /= 2;
  // The largest operand must be aligned; smaller ones are read from caches anyway.
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
  if (&member == windowed) {
    key.inner.clear();
    for (unsigned loop : GpuGroup::ownLoops(member))
      key.base += access.step[loop] * window[loop];
  }
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

/// Records why an access is narrower than 16 bytes.
void GpuEmitter::noteNarrow(const GpuMember &member, const GpuAccess &access, bool store,
                            const Chunk &chunk) {
  FlatAccess outer = outerOf(member, access), inner = innerOf(member, access);
  const FlatAccess &along = group.rows ? inner : outer, &other = group.rows ? outer : inner;
  int64_t bytes = bytesOf(access.element), wanted = kAccessBytes / bytes;
  bool aligned = chunk.lanes && isAligned(member, access, chunk);
  if (aligned && chunk.lanes >= wanted) {
    if (chunk.full)
      note(access.root, store, bytes, "row bounds");
    return;
  }
  int64_t width = aligned ? chunk.lanes * bytes : bytes;
  auto say = [&](const Twine &why) { note(access.root, store, width, why.str()); };
  if (along.isUniform() || along.isRepeated(std::max<int64_t>(2, chunk.lanes)))
    return say(group.rows && along.isUniform() ? "one element per row"
                                               : "one element for several iterations");
  if (along.dims[0].step != 1)
    return say("elements " + Twine(along.dims[0].step) + " apart");
  if (along.dims[0].extent % wanted != 0 && (along.dims.size() > 1 || group.rows))
    return say("runs of " + Twine(along.dims[0].extent) + " elements");
  if (access.view && access.divisor % wanted != 0)
    return say("an offset known only at run time");
  if (access.base % wanted != 0)
    return say("begins at element " + Twine(access.base));
  for (const FlatAccess::Dim &dim : llvm::concat<const FlatAccess::Dim>(
           llvm::drop_begin(along.dims), ArrayRef<FlatAccess::Dim>(other.dims)))
    if (dim.step % wanted != 0)
      return say("runs " + Twine(dim.step) + " elements apart");
  if (along.elements() < wanted)
    return say("only " + Twine(along.elements()) + " elements");
  say("other operands allow no more lanes");
}

} // namespace tessera::codegen
