//===- GpuContractionEmit.cpp - The launches of contractions --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Tiles/GpuTileKernel.h"
#include "GpuContractionTiles.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tessera::codegen {

GpuShape emitPartSums(GpuLaunchBuilder &launch, GpuLaunchInfo &info, const ContractionLoops &loops,
                      const ContractionShape &shape, Value parts, Value result, bool accumulates) {
  TileWriter t(launch, info);
  int64_t rows = loops.rows.size(), columns = loops.columns.size();
  int64_t total = shape.batches * rows * columns;
  int64_t width = std::min<int64_t>(ContractionTiles::widthOf(loops, loops.columns, 2, 4),
                                    columns % 4 == 0   ? 4
                                    : columns % 2 == 0 ? 2
                                                       : 1);
  t.count(parts, /*store=*/false);
  t.count(result, /*store=*/true);
  if (accumulates)
    t.count(result, /*store=*/false);
  int64_t stored = width * bytesOf(cast<MemRefType>(result.getType()).getElementType());
  if (stored < kAccessBytes)
    t.note(result, /*store=*/true, stored, width < 4 ? "unaligned rows" : "four sums of a thread");
  Type f32 = t.b.getF32Type();
  Value from = launch.flat(parts, /*write=*/false), to = launch.flat(result, /*write=*/true);
  return t.forEach(total / width, [&](Value index) {
    Value first = t.multiply(index, width);
    Value sum = t.sumOfParts(from, first, total, shape.parts, f32, width);
    // The index fits in 32 bits, since a workspace has no more elements.
    Value line = t.divide(index, columns / width);
    Value place =
        t.add(offsetOf(t, loops.columns, 2, t.multiply(t.remainder(index, columns / width), width)),
              loops.starts[2]);
    place = t.add(place, offsetOf(t, loops.rows, 2, t.remainder(line, rows)));
    place = t.add(place, offsetOf(t, loops.batches, 2, t.divide(line, rows)));
    t.put(t.rounded(sum, to, place, accumulates), to, place);
  });
}

GpuShape emitZeros(GpuLaunchBuilder &launch, GpuLaunchInfo &info, Value result) {
  TileWriter t(launch, info);
  auto type = cast<MemRefType>(result.getType());
  int64_t width = type.getNumElements() % 4 == 0 ? 4 : 1;
  t.count(result, /*store=*/true);
  if (width == 1)
    t.note(result, /*store=*/true, 4, "an odd number of elements");
  Type stored = width == 1 ? type.getElementType() : VectorType::get(4, type.getElementType());
  Value zero = arith::ConstantOp::create(t.b, t.loc, t.b.getZeroAttr(stored));
  Value to = launch.flat(result, /*write=*/true);
  return t.forEach(type.getNumElements() / width,
                   [&](Value index) { t.put(zero, to, t.multiply(index, width)); });
}

void emitContractions(func::FuncOp kernel, const ContractionKernel &contraction, ModuleOp launches,
                      StringRef symbol, ArrayRef<bool> mayAlias, runtime::GpuKernel &result,
                      GpuKernelInfo &info) {
  TileKernel tileKernel(kernel, launches, symbol, mayAlias, result, info);
  Value destination = tileKernel.root(contraction.result);
  if (contraction.fills)
    tileKernel.launch(kernel.getLoc(), GpuScheme::pointwise,
                      [&](GpuLaunchBuilder &builder, GpuLaunchInfo &about) {
                        return emitZeros(builder, about, destination);
                      });
  const ContractionKernel::Step &first = contraction.steps.front();
  if (contraction.steps.size() == 1 && !contraction.fills && !first.accumulates)
    result.convolution = convolutionOf(first.op, {first.a, first.b, contraction.result});
  for (const ContractionKernel::Step &step : contraction.steps) {
    rt::ContractionOp op = step.op;
    ContractionLoops loops(op);
    Value a = tileKernel.root(step.a), b = tileKernel.root(step.b);
    if (loops.swapped)
      std::swap(a, b);
    ContractionShape shape = ContractionTiles::shapeOf(loops, op.getA().getType().getElementType());
    Value target = destination;
    if (shape.parts > 1)
      target = tileKernel.workspace(OpBuilder(op).getF32Type(), shape.parts * shape.batches *
                                                                    loops.rows.size() *
                                                                    loops.columns.size());
    bool isWhole = shape.parts == 1;
    tileKernel.launch(op.getLoc(), GpuScheme::contraction,
                      [&](GpuLaunchBuilder &builder, GpuLaunchInfo &about) {
                        ContractionTiles(builder, about, loops, shape, {a, b, target},
                                         step.accumulates && isWhole)
                            .emit();
                        GpuShape grid;
                        grid.blocks = shape.blocks();
                        grid.threads = shape.threads;
                        return grid;
                      });
    if (!isWhole)
      tileKernel.launch(op.getLoc(), GpuScheme::contraction,
                        [&](GpuLaunchBuilder &builder, GpuLaunchInfo &about) {
                          return emitPartSums(builder, about, loops, shape, target, destination,
                                              step.accumulates);
                        });
  }
}

} // namespace tessera::codegen
