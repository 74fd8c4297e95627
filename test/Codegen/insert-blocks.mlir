// Kernels that only fill and insert are written by blocks of their leading dimensions, which are the tasks.
// RUN: tessera-opt %s --tessera-compile-kernels 2>&1 | FileCheck %s

// CHECK: k0_pad: vectorised, tasks 512,
func.func private @k0_pad(%x: tensor<8x64x14x14xf32>, %out: tensor<8x64x16x32xf32>) -> tensor<8x64x16x32xf32>
    attributes {kernel.reads = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %0 = linalg.fill ins(%zero : f32) outs(%out : tensor<8x64x16x32xf32>) -> tensor<8x64x16x32xf32>
  %1 = tensor.insert_slice %x into %0[0, 0, 1, 1] [8, 64, 14, 14] [1, 1, 1, 2] : tensor<8x64x14x14xf32> into tensor<8x64x16x32xf32>
  return %1 : tensor<8x64x16x32xf32>
}

// Concatenated channels: only the images are whole in both.
// CHECK: k1_concat: vectorised, tasks 8,
func.func private @k1_concat(%a: tensor<8x16x196xf32>, %b: tensor<8x48x196xf32>, %out: tensor<8x64x196xf32>) -> tensor<8x64x196xf32>
    attributes {kernel.reads = 2 : i64} {
  %0 = tensor.insert_slice %a into %out[0, 0, 0] [8, 16, 196] [1, 1, 1] : tensor<8x16x196xf32> into tensor<8x64x196xf32>
  %1 = tensor.insert_slice %b into %0[0, 16, 0] [8, 48, 196] [1, 1, 1] : tensor<8x48x196xf32> into tensor<8x64x196xf32>
  return %1 : tensor<8x64x196xf32>
}

// Rows of 16 elements are not worth a block each: 3 images are too few blocks.
// CHECK: k2_few: vectorised, tasks 1,
func.func private @k2_few(%x: tensor<3x64x12xf32>, %out: tensor<3x64x16xf32>) -> tensor<3x64x16xf32>
    attributes {kernel.reads = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %0 = linalg.fill ins(%zero : f32) outs(%out : tensor<3x64x16xf32>) -> tensor<3x64x16xf32>
  %1 = tensor.insert_slice %x into %0[0, 0, 2] [3, 64, 12] [1, 1, 1] : tensor<3x64x12xf32> into tensor<3x64x16xf32>
  return %1 : tensor<3x64x16xf32>
}

// What is inserted into an argument that the kernel reads is copied first, as before.
// CHECK: k3_read: vectorised, tasks 1,
func.func private @k3_read(%x: tensor<8x32x64xf32>, %y: tensor<8x64x64xf32>, %out: tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    attributes {kernel.reads = 2 : i64} {
  %0 = tensor.insert_slice %x into %y[0, 16, 0] [8, 32, 64] [1, 1, 1] : tensor<8x32x64xf32> into tensor<8x64x64xf32>
  return %0 : tensor<8x64x64xf32>
}
