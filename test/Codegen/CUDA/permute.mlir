// A permutation of the contiguous dimension goes through a tile in shared memory: 128-bit accesses on both sides.
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_80 print-ptx print-accesses" -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %s --tessera-check-gpu-kernels=wide-indices -o /dev/null | FileCheck %s --check-prefix=EQUAL

// CHECK-LABEL: transpose: launches 1, workspace 0, bytes 153600 of 153600
// CHECK-NEXT: permute: grid 8, block 256, shared 16640
// CHECK-NOT: bits:
// CHECK: ld.global{{(.nc)?}}.v4.b32
// CHECK: st.shared
// CHECK: bar.sync
// CHECK: ld.shared
// CHECK: st.global.v4.b32
// EQUAL: transpose: permute equal
func.func private @transpose(%x: tensor<200x96xf32>, %o: tensor<96x200xf32>) -> tensor<96x200xf32>
    attributes {kernel.reads = 1 : i64} {
  %0 = linalg.transpose ins(%x : tensor<200x96xf32>) outs(%o : tensor<96x200xf32>) permutation = [1, 0]
  return %0 : tensor<96x200xf32>
}

// Elementwise ops join, with operands in the layout of the result.
// CHECK-LABEL: fused: launches 1
// CHECK-NEXT: permute
// CHECK: argument 2 by 16 bits: one element for several iterations
// CHECK-NOT: bits:
// CHECK: st.global.v4.b32
// EQUAL: fused: permute equal
func.func private @fused(%x: tensor<96x64xbf16>, %y: tensor<64x96xbf16>, %b: tensor<64xbf16>, %o: tensor<64x96xbf16>)
    -> tensor<64x96xbf16> attributes {kernel.reads = 3 : i64} {
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>,
                                        affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %y, %b : tensor<96x64xbf16>, tensor<64x96xbf16>, tensor<64xbf16>) outs(%o : tensor<64x96xbf16>) {
  ^bb0(%p: bf16, %q: bf16, %r: bf16, %s: bf16):
    %t = math.tanh %p : bf16
    %u = arith.addf %t, %q : bf16
    %v = arith.mulf %u, %r : bf16
    linalg.yield %v : bf16
  } -> tensor<64x96xbf16>
  return %0 : tensor<64x96xbf16>
}

// A part of a reshard: a slice of a tensor with its last dimension moved to the front, into a slice of a buffer.
// CHECK-LABEL: pack: launches
// CHECK: permute
// EQUAL: pack: {{.*}}permute{{.*}} equal
func.func private @pack(%x: tensor<6x40x128xf32>, %d: tensor<2x64x6x40xf32>) -> tensor<2x64x6x40xf32>
    attributes {kernel.reads = 1 : i64} {
  %p = tensor.extract_slice %x[0, 0, 64] [6, 40, 64] [1, 1, 1] : tensor<6x40x128xf32> to tensor<6x40x64xf32>
  %e = tensor.empty() : tensor<64x6x40xf32>
  %t = linalg.transpose ins(%p : tensor<6x40x64xf32>) outs(%e : tensor<64x6x40xf32>) permutation = [2, 0, 1]
  %0 = tensor.insert_slice %t into %d[1, 0, 0, 0] [1, 64, 6, 40] [1, 1, 1, 1] : tensor<64x6x40xf32> into tensor<2x64x6x40xf32>
  return %0 : tensor<2x64x6x40xf32>
}

// Several loops stay, edges are partial tiles, elements have one byte.
// EQUAL: heads: permute equal
func.func private @heads(%x: tensor<3x20x2x40xi8>, %o: tensor<40x3x2x20xi8>) -> tensor<40x3x2x20xi8>
    attributes {kernel.reads = 1 : i64} {
  %0 = linalg.transpose ins(%x : tensor<3x20x2x40xi8>) outs(%o : tensor<40x3x2x20xi8>) permutation = [3, 0, 2, 1]
  return %0 : tensor<40x3x2x20xi8>
}

// EQUAL: odd: permute equal
func.func private @odd(%x: tensor<67x131xf64>, %o: tensor<131x67xf64>) -> tensor<131x67xf64>
    attributes {kernel.reads = 1 : i64} {
  %0 = linalg.transpose ins(%x : tensor<67x131xf64>) outs(%o : tensor<131x67xf64>) permutation = [1, 0]
  return %0 : tensor<131x67xf64>
}

// EQUAL: flags: permute equal
func.func private @flags(%x: tensor<130x48xi1>, %o: tensor<48x130xi1>) -> tensor<48x130xi1>
    attributes {kernel.reads = 1 : i64} {
  %0 = linalg.transpose ins(%x : tensor<130x48xi1>) outs(%o : tensor<48x130xi1>) permutation = [1, 0]
  return %0 : tensor<48x130xi1>
}

// Dimensions of a few elements stay in place: a tile would gain nothing.
// CHECK-LABEL: short: launches 1
// CHECK-NEXT: pointwise
// EQUAL: short: pointwise equal
func.func private @short(%x: tensor<1000x2xf32>, %o: tensor<2x1000xf32>) -> tensor<2x1000xf32>
    attributes {kernel.reads = 1 : i64} {
  %0 = linalg.transpose ins(%x : tensor<1000x2xf32>) outs(%o : tensor<2x1000xf32>) permutation = [1, 0]
  return %0 : tensor<2x1000xf32>
}
