// RUN: tessera-opt %s --dist-print-rules --verify-diagnostics -o /dev/null

// Rules of linalg ops are read off indexing maps, iterator types and bodies.

func.func @matmul(%a: tensor<8x4xf32>, %b: tensor<4x16xf32>, %c: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<8x4xf32>, tensor<4x16xf32>) outs(%c : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

func.func @batch_matmul(%a: tensor<2x8x4xf32>, %b: tensor<2x4x16xf32>, %c: tensor<2x8x16xf32>) -> tensor<2x8x16xf32> {
  %0 = linalg.batch_matmul ins(%a, %b : tensor<2x8x4xf32>, tensor<2x4x16xf32>) outs(%c : tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  return %0 : tensor<2x8x16xf32>
}

func.func @matvec(%a: tensor<8x4xf32>, %x: tensor<4xf32>, %c: tensor<8xf32>) -> tensor<8xf32> {
  %0 = linalg.matvec ins(%a, %x : tensor<8x4xf32>, tensor<4xf32>) outs(%c : tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

func.func @dot(%x: tensor<8xf32>, %y: tensor<8xf32>, %c: tensor<f32>) -> tensor<f32> {
  %0 = linalg.dot ins(%x, %y : tensor<8xf32>, tensor<8xf32>) outs(%c : tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// A window of two rows more than iterations, a stride of 2; the kernel's loops lie within it.
func.func @conv(%x: tensor<2x9x9x3xf32>, %k: tensor<3x3x3x8xf32>, %c: tensor<2x4x4x8xf32>) -> tensor<2x4x4x8xf32> {
  %0 = linalg.conv_2d_nhwc_hwcf {strides = dense<2> : tensor<2xi64>} ins(%x, %k : tensor<2x9x9x3xf32>, tensor<3x3x3x8xf32>) outs(%c : tensor<2x4x4x8xf32>) -> tensor<2x4x4x8xf32>
  return %0 : tensor<2x4x4x8xf32>
}

func.func @pooling(%x: tensor<2x8x8x3xf32>, %w: tensor<2x2xf32>, %c: tensor<2x7x7x3xf32>) -> tensor<2x7x7x3xf32> {
  %0 = linalg.pooling_nhwc_max ins(%x, %w : tensor<2x8x8x3xf32>, tensor<2x2xf32>) outs(%c : tensor<2x7x7x3xf32>) -> tensor<2x7x7x3xf32>
  return %0 : tensor<2x7x7x3xf32>
}

func.func @fill(%v: f32, %c: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = linalg.fill ins(%v : f32) outs(%c : tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

func.func @transpose(%a: tensor<8x4xf32>, %c: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = linalg.transpose ins(%a : tensor<8x4xf32>) outs(%c : tensor<4x8xf32>) permutation = [1, 0]
  return %0 : tensor<4x8xf32>
}

func.func @broadcast(%a: tensor<4xf32>, %c: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = linalg.broadcast ins(%a : tensor<4xf32>) outs(%c : tensor<8x4xf32>) dimensions = [0]
  return %0 : tensor<8x4xf32>
}

func.func @reduce_sum(%a: tensor<8x4xf32>, %c: tensor<4xf32>) -> tensor<4xf32> {
  %0 = linalg.reduce ins(%a : tensor<8x4xf32>) outs(%c : tensor<4xf32>) dimensions = [0]
    (%in: f32, %acc: f32) {
      %s = arith.addf %acc, %in : f32
      linalg.yield %s : f32
    }
  return %0 : tensor<4xf32>
}

// A maximum is cut, and forwards no sums.
func.func @reduce_max(%a: tensor<8x4xf32>, %c: tensor<4xf32>) -> tensor<4xf32> {
  %0 = linalg.reduce ins(%a : tensor<8x4xf32>) outs(%c : tensor<4xf32>) dimensions = [0]
    (%in: f32, %acc: f32) {
      %s = arith.maximumf %acc, %in : f32
      linalg.yield %s : f32
    }
  return %0 : tensor<4xf32>
}

// How an integer exclusive or combines is not said by a reduction of the dialect: the loop stays whole.
func.func @reduce_xor(%a: tensor<8x4xi32>, %c: tensor<4xi32>) -> tensor<4xi32> {
  %0 = linalg.reduce ins(%a : tensor<8x4xi32>) outs(%c : tensor<4xi32>) dimensions = [0]
    (%in: i32, %acc: i32) {
      %s = arith.xori %acc, %in : i32
      linalg.yield %s : i32
    }
  return %0 : tensor<4xi32>
}

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
#diagonal = affine_map<(i) -> (i, i)>
#vector = affine_map<(i) -> (i)>

func.func @add(%a: tensor<8x4xf32>, %b: tensor<4xf32>, %c: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<8x4xf32>, tensor<4xf32>) outs(%c : tensor<8x4xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

func.func @multiply(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>, %c: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<8x4xf32>, tensor<8x4xf32>) outs(%c : tensor<8x4xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %s = arith.mulf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// Reads a diagonal: one loop in two dimensions is not cut.
func.func @diagonal(%a: tensor<8x8xf32>, %c: tensor<8xf32>) -> tensor<8xf32> {
  %0 = linalg.generic {indexing_maps = [#diagonal, #vector], iterator_types = ["parallel"]}
      ins(%a : tensor<8x8xf32>) outs(%c : tensor<8xf32>) {
  ^bb0(%x: f32, %z: f32):
    linalg.yield %x : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
