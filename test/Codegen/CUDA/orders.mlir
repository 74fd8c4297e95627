// A GPU runs blocks, warps and lanes in any order: the check runs kernels in several, and finds a barrier
// that is missing (here: that all threads pass without waiting), and accesses that are not aligned.
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: not tessera-opt %s --tessera-check-gpu-kernels="drop-barrier=0 races=false" -o /dev/null 2>&1 | FileCheck %s --check-prefix=FIRST
// RUN: not tessera-opt %s --tessera-check-gpu-kernels="drop-barrier=2 races=false" -o /dev/null 2>&1 | FileCheck %s --check-prefix=THIRD
// RUN: not tessera-opt %s --tessera-check-gpu-kernels=misalign=8 -o /dev/null 2>&1 | FileCheck %s --check-prefix=ASKEW
// RUN: tessera-opt %s --tessera-check-gpu-kernels="drop-barrier=2 orders=false races=false" -o /dev/null | FileCheck %s --check-prefix=EQUAL

// EQUAL: softmax: rows equal
// FIRST: error: on the emulated GPU argument 1 differs
// FIRST-NEXT: @softmax
// ASKEW: error: on the emulated GPU launch 0: kernel '{{.*}}': thread (0, 0, 0) of block (0, 0, 0) accesses 16 bytes at an address 8 past a multiple of 16
// ASKEW-NEXT: @softmax
func.func private @softmax(%x: tensor<64x1000xf32>, %o: tensor<64x1000xf32>) -> tensor<64x1000xf32>
    attributes {kernel.reads = 1 : i64} {
  %0 = linalg.softmax dimension(1) ins(%x : tensor<64x1000xf32>) outs(%o : tensor<64x1000xf32>) -> tensor<64x1000xf32>
  return %0 : tensor<64x1000xf32>
}

// EQUAL: transpose: permute equal
// FIRST: error: on the emulated GPU argument 1 differs
// FIRST-NEXT: @transpose
func.func private @transpose(%x: tensor<64x96xf32>, %o: tensor<96x64xf32>) -> tensor<96x64xf32> attributes {kernel.reads = 1 : i64} {
  %0 = linalg.transpose ins(%x : tensor<64x96xf32>) outs(%o : tensor<96x64xf32>) permutation = [1, 0]
  return %0 : tensor<96x64xf32>
}

// The third barrier is between the reads of a tile and the writes of the next one. If warps run in ascending order, no
// other warp has read before the tile is overwritten.
// EQUAL: flipped: contraction equal
// THIRD: error: on the emulated GPU argument 2 depends on the order of blocks, warps and lanes, descending against ascending: max error
// THIRD-NEXT: @flipped
func.func private @flipped(%g: tensor<8x24x13xbf16>, %w: tensor<24x16x3xbf16>, %out: tensor<8x16x11xf32>)
    -> tensor<8x16x11xf32> attributes {kernel.reads = 2 : i64} {
  %y = rt.contraction %g, %w into %out starts [0, 2, 0] extents [8, 16, 11, 24, 3]
      strides [312, 0, 1, 13, 1], [0, 3, 0, 48, -1], [176, 11, 1, 0, 0] overwrite
      : tensor<8x24x13xbf16>, tensor<24x16x3xbf16> into tensor<8x16x11xf32>
  return %y : tensor<8x16x11xf32>
}

