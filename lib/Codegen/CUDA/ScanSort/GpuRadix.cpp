//===- GpuRadix.cpp - The launches of a sort by digits --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Long lines are sorted by 8 bits of a key at a time, from the least significant bits of the last
// key on, each time stably (D. Knuth, "The Art of Computer Programming", 5.2.5). A pass has three
// launches: each block counts the digits of a tile; the counts of a digit are summed up over the
// blocks, which a scan does (GpuScan.cpp); each block moves its elements to where those of smaller
// digits, and equal ones of earlier blocks, end. Equal elements keep their order, so that no index
// has to be compared, and nothing depends on the order of blocks.
//
//===----------------------------------------------------------------------===//

#include "GpuRadix.h"
#include "GpuScanTiles.h"

#include <map>
#include <numeric>

using namespace mlir;

namespace tessera::codegen {

/// Bytes of an element up to which passes move all operands, and of a tile in shared memory.
static constexpr int64_t kMovedBytes = 16, kTileBytes = 32 << 10;
static constexpr int64_t kMostItems = 16;

static int64_t bitsOf(Type element) {
  return element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
}

RadixShape::RadixShape(const SortKernel &sort)
    : lines(sort.op.getShape(), sort.op.getDim()), count(sort.op.getCount()), sort(sort) {
  for (Value input : sort.op.getInputs())
    elements.push_back(getElementTypeOrSelf(input.getType()));
  auto keys = static_cast<unsigned>(sort.op.getKeys());
  for (unsigned key = keys; key-- > 0;) {
    int64_t bits = bitsOf(elements[key]);
    isPossible &= llvm::is_contained({1, 8, 16, 32, 64}, bits);
    for (int64_t shift = 0; shift < bits; shift += kBits) {
      RadixPass &pass = passes.emplace_back();
      pass.key = key;
      pass.shift = shift;
      pass.beginsKey = shift == 0;
      pass.endsKey = shift + kBits >= bits;
    }
  }
  passes.front().isFirst = passes.back().isLast = true;
  int64_t bytes = 0;
  for (unsigned number = 0; number < elements.size(); ++number)
    if (number < keys || sort.results[number]) {
      moved.push_back(number);
      bytes += bytesOf(elements[number]);
    }
  int64_t whole = bytes <= kMovedBytes ? bytesOfElement() : 0;
  SmallVector<unsigned> all;
  std::swap(all, moved);
  if (whole && whole <= bytesOfElement())
    moved = all;
  int64_t widest = 0;
  for (const RadixPass &pass : passes) {
    int64_t fields = 0;
    for (Type field : fieldsOf(pass))
      fields += bytesOf(field);
    widest = std::max(widest, fields);
  }
  for (items = kMostItems; items > 1 && items * kThreads * widest > kTileBytes;)
    items /= 2;
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  isPossible &= lines.extent <= kMost && numLines() <= kMost / kDigits && blocks() <= kMaxBlocks;
}

SmallVector<Type> RadixShape::fieldsOf(const RadixPass &pass) const {
  if (!moved.empty())
    return llvm::map_to_vector(moved, [&](unsigned number) { return elements[number]; });
  return {elements[pass.key], IntegerType::get(sort.op->getContext(), 32)};
}

int64_t RadixShape::bytesOfElement() const {
  int64_t total = 0;
  for (const RadixPass &pass : passes) {
    int64_t key = bytesOf(elements[pass.key]), all = 0;
    for (Type field : fieldsOf(pass))
      all += bytesOf(field);
    bool gathersKey = moved.empty() && pass.beginsKey && !pass.isFirst;
    total += 2 * (gathersKey ? kSectorBytes : key) + (all - key);
    if (!pass.isLast || !moved.empty()) {
      total += all;
      continue;
    }
    for (auto [result, element] : llvm::zip_equal(sort.results, elements))
      if (result)
        total += std::max(kSectorBytes, bytesOf(element)) + bytesOf(element);
  }
  return total;
}

void emitRadixSort(const SortKernel &sort, const RadixShape &shape, TileKernel &kernel) {
  Location loc = sort.op.getLoc();
  OpBuilder b(sort.op);
  Type i32 = b.getI32Type();
  int64_t bytes = 0;
  auto allocate = [&](Type element, int64_t count, int64_t at) {
    bytes = std::max<int64_t>(bytes, at + llvm::alignTo(count * bytesOf(element), 256));
    return kernel.workspace(element, count, at);
  };
  // The moved values, in two halves; without moved operands a key at a time has the first place.
  int64_t total = shape.numLines() * shape.lines.extent;
  auto passes = static_cast<int64_t>(shape.passes.size());
  std::map<unsigned, SmallVector<Value>> halves[2];
  if (passes > 1)
    for (auto &half : halves) {
      int64_t begin = bytes;
      for (const RadixPass &pass : shape.passes) {
        SmallVector<Value> &fields = half[shape.moved.empty() ? pass.key : 0];
        if (!fields.empty())
          continue;
        int64_t at = begin;
        for (Type field : llvm::reverse(shape.fieldsOf(pass))) { // keys of several widths are last
          fields.insert(fields.begin(), allocate(field, total, at));
          at = llvm::alignTo(at + total * bytesOf(field), 256);
        }
      }
    }
  int64_t numCounts = shape.numLines() * RadixShape::kDigits * shape.blocksOfLine();
  Value counts = allocate(i32, numCounts, bytes), sums = allocate(i32, numCounts, bytes);
  Value table = passes > 1 ? allocate(i32, RadixTiles::kEntry * passes, bytes) : Value();
  int64_t tableAt = bytes - llvm::alignTo(RadixTiles::kEntry * passes * 4, 256);
  SmallVector<Value> shifts;
  for (int64_t pass = 0; pass < passes && table; ++pass)
    shifts.push_back(
        kernel.workspace(i32, RadixTiles::kEntry, tableAt + 4 * RadixTiles::kEntry * pass));
  // The sums of counts.
  Block sum;
  sum.addArguments({i32, i32}, {loc, loc});
  OpBuilder inside(b.getContext());
  inside.setInsertionPointToEnd(&sum);
  Value added = arith::AddIOp::create(inside, loc, sum.getArgument(0), sum.getArgument(1));
  ext::YieldOp::create(inside, loc, added);
  ScanShape scan(Lines({shape.numLines() * RadixShape::kDigits, shape.blocksOfLine()}, /*dim=*/1),
                 {i32});
  assert(scan.parts == 1 && "the lines of all digits occupy a GPU");

  // Passes differ in their shifts alone, except for the first and last ones of a key: these are
  // functions of their own.
  struct Made {
    size_t number;
    SmallVector<Value> roots;
    GpuLaunchInfo about;
  };
  std::map<std::array<unsigned, 6>, Made> made;
  auto launchOf = [&](std::array<unsigned, 6> kind, ArrayRef<Value> roots, int64_t blocks,
                      function_ref<GpuShape(GpuLaunchBuilder &, GpuLaunchInfo &)> emit) {
    auto known = made.find(kind);
    if (known == made.end()) {
      GpuLaunchInfo about;
      size_t number =
          kernel.launch(loc, GpuScheme::sort, [&](GpuLaunchBuilder &builder, GpuLaunchInfo &info) {
            GpuShape grid = emit(builder, info);
            about = info;
            return grid;
          });
      made[kind] = {number, SmallVector<Value>(roots), about};
      return;
    }
    SmallVector<std::pair<Value, Value>> replaced;
    for (auto [from, to] : llvm::zip_equal(known->second.roots, roots))
      replaced.push_back({from, to});
    kernel.repeat(known->second.number, blocks, replaced, known->second.about);
  };
  for (auto [i, pass] : llvm::enumerate(shape.passes)) {
    unsigned place = shape.moved.empty() ? pass.key : 0;
    // The first pass of another key reads indices alone, which have one place for all keys.
    SmallVector<Value> from, to, roots;
    if (!pass.isFirst)
      from = halves[i % 2][place];
    if (!pass.isLast)
      to = halves[1 - i % 2][place];
    Value shift = pass.isFirst || passes == 1 ? Value() : shifts[i];
    roots = from;
    llvm::append_range(roots, to);
    if (shift)
      roots.push_back(shift);
    auto kindOf = [&](unsigned launch) {
      return std::array<unsigned, 6>{launch,      pass.key,       pass.isFirst,
                                     pass.isLast, pass.beginsKey, pass.endsKey};
    };
    launchOf(kindOf(0), roots, shape.blocks(),
             [&](GpuLaunchBuilder &builder, GpuLaunchInfo &about) {
               RadixTiles tiles(builder, about, sort, shape, pass, kernel);
               return tiles.count(from, counts, shift, pass.isFirst ? table : Value());
             });
    launchOf({1}, {}, scan.blocks(1), [&](GpuLaunchBuilder &builder, GpuLaunchInfo &about) {
      ScanTiles tiles(builder, about, sum, scan, {{counts}, {sums}});
      return tiles.scan({});
    });
    launchOf(kindOf(2), roots, shape.blocks(),
             [&](GpuLaunchBuilder &builder, GpuLaunchInfo &about) {
               RadixTiles tiles(builder, about, sort, shape, pass, kernel);
               return tiles.scatter(from, sums, to, shift);
             });
  }
}

} // namespace tessera::codegen
