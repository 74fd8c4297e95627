//===- GpuScan.cpp - The launches of a scan -------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One launch reads and writes every element once, if there are enough lines for the GPU. A few long
// lines are cut into parts: one launch combines the elements of each part, one scans these totals,
// and one scans each part after what precedes it (G. Blelloch, "Prefix Sums and Their
// Applications", 1990), which reads elements twice.
//
//===----------------------------------------------------------------------===//

#include "GpuScanTiles.h"

using namespace mlir;

namespace tessera::codegen {

static ScanShape shapeOf(ext::ScanOp op) {
  auto elements = llvm::map_to_vector(
      op.getInputs(), [](Value input) { return getElementTypeOrSelf(input.getType()); });
  return {Lines(op.getShape(), op.getDim()), elements};
}

std::optional<ScanKernel> matchScan(func::FuncOp kernel) {
  std::optional<ScanKernel> match = matchOpKernel<ext::ScanOp>(kernel);
  if (!match)
    return std::nullopt;
  ScanShape shape = shapeOf(match->op);
  bool fits = shape.numLines() <= std::numeric_limits<int32_t>::max() &&
              shape.blocks(shape.parts) <= kMaxBlocks;
  return fits ? match : std::nullopt;
}

void emitScan(func::FuncOp kernel, const ScanKernel &scan, ModuleOp launches, StringRef symbol,
              ArrayRef<bool> mayAlias, runtime::GpuKernel &result, GpuKernelInfo &info) {
  TileKernel tileKernel(kernel, launches, symbol, mayAlias, result, info);
  ScanShape shape = shapeOf(scan.op);
  auto launchOf = [&](const ScanShape &shape, const ScanTiles::Lists &tensors,
                      function_ref<GpuShape(ScanTiles &)> emit) {
    tileKernel.launch(scan.op.getLoc(), GpuScheme::scan,
                      [&](GpuLaunchBuilder &builder, GpuLaunchInfo &about) {
                        ScanTiles tiles(builder, about, scan.op.getBody(), shape, tensors);
                        return emit(tiles);
                      });
  };
  ScanTiles::Lists tensors;
  tensors.inputs = tileKernel.roots(scan.operands);
  for (std::optional<unsigned> place : scan.results)
    tensors.results.push_back(place ? tileKernel.root(*place) : Value());
  if (scan.op.getExclusive())
    tensors.identity = scan.op.getIdentityAttr();
  tensors.reverse = scan.op.getReverse();
  ScanTiles::Values totals;
  if (int64_t parts = shape.parts - 1; parts > 0) {
    int64_t bytes = 0;
    SmallVector<Type> elements;
    for (Value input : tensors.inputs)
      elements.push_back(cast<MemRefType>(input.getType()).getElementType());
    auto allocate = [&] {
      return llvm::map_to_vector(elements, [&](Type element) {
        int64_t count = shape.numLines() * parts;
        Value memory = tileKernel.workspace(element, count, bytes);
        bytes = llvm::alignTo(bytes + count * bytesOf(element), 256);
        return memory;
      });
    };
    totals = allocate();
    launchOf(shape, tensors, [&](ScanTiles &tiles) { return tiles.reduce(totals); });
    if (parts > 1) {
      ScanShape ofTotals(Lines({shape.numLines(), parts}, 1), elements);
      assert(ofTotals.parts == 1 && "totals are few");
      ScanTiles::Values scanned = allocate();
      launchOf(ofTotals, {totals, scanned}, [&](ScanTiles &tiles) { return tiles.scan({}); });
      totals = scanned;
    }
  }
  launchOf(shape, tensors, [&](ScanTiles &tiles) { return tiles.scan(totals); });
}

} // namespace tessera::codegen
