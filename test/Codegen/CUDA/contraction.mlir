// Convolutions and their derivatives are implicit matrix products: tiles of windows are loaded directly to shared memory.
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_80 print-ptx" -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s --check-prefix=EQUAL

// NCHW: windows are read by single elements, results stored by one, since rows have 7.
// CHECK-LABEL: forward: launches 2, workspace
// CHECK-NEXT: contraction: grid
// CHECK-NEXT: contraction: grid
// CHECK: fma.rn.f32
// EQUAL: forward: contraction contraction equal
func.func private @forward(%x: tensor<2x16x11x9xf32>, %w: tensor<24x16x3x3xf32>, %out: tensor<2x24x5x7xf32>)
    -> tensor<2x24x5x7xf32> attributes {kernel.reads = 2 : i64} {
  %y = rt.contraction %x, %w into %out starts [0, 0, 0] extents [2, 24, 5, 7, 16, 3, 3]
      strides [1584, 0, 18, 1, 99, 9, 1], [0, 144, 0, 0, 9, 3, 1], [840, 35, 7, 1, 0, 0, 0] overwrite
      : tensor<2x16x11x9xf32>, tensor<24x16x3x3xf32> into tensor<2x24x5x7xf32>
  return %y : tensor<2x24x5x7xf32>
}

// NHWC: features are contiguous, so all is read by 128 bits; weights come transposed from shared memory.
// CHECK-LABEL: features_last: launches 1, workspace 0
// CHECK-NEXT: contraction: grid 33, block 128, shared {{[0-9]+}}, reads 341504, writes 1081344
// CHECK: ld.global{{(.nc)?}}.v4.b32
// CHECK: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// CHECK: st.global.v2.{{[bf]}}32
// EQUAL: features_last: contraction equal
func.func private @features_last(%x: tensor<4x34x35x32xbf16>, %w: tensor<3x3x32x64xbf16>, %out: tensor<4x32x33x64xf32>)
    -> tensor<4x32x33x64xf32> attributes {kernel.reads = 2 : i64} {
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%out : tensor<4x32x33x64xf32>) -> tensor<4x32x33x64xf32>
  %y = rt.contraction %x, %w into %init starts [0, 0, 0] extents [4, 32, 33, 64, 3, 3, 32]
      strides [38080, 1120, 32, 0, 1120, 32, 1], [0, 0, 0, 1, 6144, 2048, 64], [67584, 2112, 64, 1, 0, 0, 0]
      : tensor<4x34x35x32xbf16>, tensor<3x3x32x64xbf16> into tensor<4x32x33x64xf32>
  return %y : tensor<4x32x33x64xf32>
}

// A flipped kernel is read backwards.
// CHECK-LABEL: flipped: launches
// EQUAL: flipped: contraction equal
func.func private @flipped(%g: tensor<8x24x13xbf16>, %w: tensor<24x16x3xbf16>, %out: tensor<8x16x11xf32>)
    -> tensor<8x16x11xf32> attributes {kernel.reads = 2 : i64} {
  %y = rt.contraction %g, %w into %out starts [0, 2, 0] extents [8, 16, 11, 24, 3]
      strides [312, 0, 1, 13, 1], [0, 3, 0, 48, -1], [176, 11, 1, 0, 0] overwrite
      : tensor<8x24x13xbf16>, tensor<24x16x3xbf16> into tensor<8x16x11xf32>
  return %y : tensor<8x16x11xf32>
}

// The derivative with respect to the weights has few results and long sums: a second launch adds parts.
// CHECK-LABEL: by_weights: launches 2, workspace {{[1-9]}}
// CHECK-NEXT: contraction: grid 64, block 256
// CHECK-NEXT: contraction: grid
// EQUAL: by_weights: contraction contraction equal
func.func private @by_weights(%x: tensor<8x16x18x18xf32>, %g: tensor<8x32x16x16xf32>, %out: tensor<32x16x3x3xf32>)
    -> tensor<32x16x3x3xf32> attributes {kernel.reads = 2 : i64} {
  %y = rt.contraction %x, %g into %out starts [0, 0, 0] extents [32, 16, 3, 3, 8, 16, 16]
      strides [0, 324, 18, 1, 5184, 18, 1], [256, 0, 0, 0, 8192, 16, 1], [144, 9, 3, 1, 0, 0, 0]
      : tensor<8x16x18x18xf32>, tensor<8x32x16x16xf32> into tensor<32x16x3x3xf32>
  return %y : tensor<32x16x3x3xf32>
}

// Phases of a derivative with respect to the input write to one result, which is zero elsewhere.
// CHECK-LABEL: phases: launches 3
// CHECK-NEXT: pointwise: grid
// EQUAL: phases: pointwise contraction contraction equal
func.func private @phases(%g: tensor<4x32x10xf16>, %w: tensor<32x16x4xf16>, %out: tensor<4x16x24xf32>)
    -> tensor<4x16x24xf32> attributes {kernel.reads = 2 : i64} {
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%out : tensor<4x16x24xf32>) -> tensor<4x16x24xf32>
  %even = rt.contraction %g, %w into %init starts [1, 0, 1] extents [4, 16, 9, 32, 2]
      strides [320, 0, 1, 10, -1], [0, 4, 0, 64, 2], [384, 24, 2, 0, 0] overwrite
      : tensor<4x32x10xf16>, tensor<32x16x4xf16> into tensor<4x16x24xf32>
  %odd = rt.contraction %g, %w into %even starts [1, 1, 2] extents [4, 16, 9, 32, 2]
      strides [320, 0, 1, 10, -1], [0, 4, 0, 64, 2], [384, 24, 2, 0, 0] overwrite
      : tensor<4x32x10xf16>, tensor<32x16x4xf16> into tensor<4x16x24xf32>
  return %odd : tensor<4x16x24xf32>
}

// Groups are batches of products.
// CHECK-LABEL: groups: launches
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// EQUAL: groups: contraction equal
func.func private @groups(%x: tensor<2x9x9x3x16xf16>, %w: tensor<3x3x3x16x24xf16>, %out: tensor<2x4x4x3x24xf32>)
    -> tensor<2x4x4x3x24xf32> attributes {kernel.reads = 2 : i64} {
  %y = rt.contraction %x, %w into %out starts [0, 0, 0] extents [2, 4, 4, 3, 24, 3, 3, 16]
      strides [3888, 864, 96, 16, 0, 432, 48, 1], [0, 0, 0, 384, 1, 3456, 1152, 24], [1152, 288, 72, 24, 1, 0, 0, 0] overwrite
      : tensor<2x9x9x3x16xf16>, tensor<3x3x3x16x24xf16> into tensor<2x4x4x3x24xf32>
  return %y : tensor<2x4x4x3x24xf32>
}

// Results of 16 bits are rounded once, as they are stored; sums in parts are added in f32 first.
// CHECK-LABEL: narrow: launches 1, workspace 0
// CHECK-NEXT: contraction: grid 33, block 128, shared {{[0-9]+}}, reads 341504, writes 540672
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// CHECK: cvt.rn.bf16x2.f32
// CHECK: st.global.b32
// EQUAL: narrow: contraction equal
func.func private @narrow(%x: tensor<4x34x35x32xbf16>, %w: tensor<3x3x32x64xbf16>, %out: tensor<4x32x33x64xbf16>)
    -> tensor<4x32x33x64xbf16> attributes {kernel.reads = 2 : i64} {
  %y = rt.contraction %x, %w into %out starts [0, 0, 0] extents [4, 32, 33, 64, 3, 3, 32]
      strides [38080, 1120, 32, 0, 1120, 32, 1], [0, 0, 0, 1, 6144, 2048, 64], [67584, 2112, 64, 1, 0, 0, 0] overwrite
      : tensor<4x34x35x32xbf16>, tensor<3x3x32x64xbf16> into tensor<4x32x33x64xbf16>
  return %y : tensor<4x32x33x64xbf16>
}

// CHECK-LABEL: narrow_parts: launches 2, workspace {{[1-9]}}
// EQUAL: narrow_parts: contraction contraction equal
func.func private @narrow_parts(%x: tensor<8x16x18x18xf16>, %g: tensor<8x32x16x16xf16>, %out: tensor<32x16x3x3xf16>)
    -> tensor<32x16x3x3xf16> attributes {kernel.reads = 2 : i64} {
  %y = rt.contraction %x, %g into %out starts [0, 0, 0] extents [32, 16, 3, 3, 8, 16, 16]
      strides [0, 324, 18, 1, 5184, 18, 1], [256, 0, 0, 0, 8192, 16, 1], [144, 9, 3, 1, 0, 0, 0] overwrite
      : tensor<8x16x18x18xf16>, tensor<8x32x16x16xf16> into tensor<32x16x3x3xf16>
  return %y : tensor<32x16x3x3xf16>
}

// What is in the result is added before the rounding.
// CHECK-LABEL: narrow_sum: launches 1, workspace 0
// EQUAL: narrow_sum: contraction equal
func.func private @narrow_sum(%x: tensor<4x34x35x32xbf16>, %w: tensor<3x3x32x64xbf16>, %out: tensor<4x32x33x64xbf16>)
    -> tensor<4x32x33x64xbf16> attributes {kernel.reads = 2 : i64} {
  %y = rt.contraction %x, %w into %out starts [0, 0, 0] extents [4, 32, 33, 64, 3, 3, 32]
      strides [38080, 1120, 32, 0, 1120, 32, 1], [0, 0, 0, 1, 6144, 2048, 64], [67584, 2112, 64, 1, 0, 0, 0]
      : tensor<4x34x35x32xbf16>, tensor<3x3x32x64xbf16> into tensor<4x32x33x64xbf16>
  return %y : tensor<4x32x33x64xbf16>
}
