// A transposition that a product reads as a view takes no time; the next one of the same shape, a
// copy, does: they have different costs.
// RUN: tessera-opt %s --split-input-file --dist-normalize --dist-search | FileCheck %s

// CHECK: dist.search = {{.*}}compute = [[COMPUTE:[^ ]+]] : f64
dist.process_mesh @m(shape = [2], dim_names = ["d"])

func.func @main(%x: tensor<512x512xf32>, %y: tensor<512x512xf32>) -> (tensor<512x512xf32>, tensor<512x512xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %view = linalg.transpose ins(%x : tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) permutation = [1, 0]
  %product = linalg.matmul ins(%view, %y : tensor<512x512xf32>, tensor<512x512xf32>) outs(%f : tensor<512x512xf32>) -> tensor<512x512xf32>
  %copy = linalg.transpose ins(%y : tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) permutation = [1, 0]
  return %product, %copy : tensor<512x512xf32>, tensor<512x512xf32>
}

// -----

// CHECK: dist.search = {{.*}}compute = [[COMPUTE]] : f64
dist.process_mesh @m(shape = [2], dim_names = ["d"])

func.func @main(%x: tensor<512x512xf32>, %y: tensor<512x512xf32>) -> (tensor<512x512xf32>, tensor<512x512xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %copy = linalg.transpose ins(%y : tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) permutation = [1, 0]
  %view = linalg.transpose ins(%x : tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) permutation = [1, 0]
  %product = linalg.matmul ins(%view, %y : tensor<512x512xf32>, tensor<512x512xf32>) outs(%f : tensor<512x512xf32>) -> tensor<512x512xf32>
  return %product, %copy : tensor<512x512xf32>, tensor<512x512xf32>
}
