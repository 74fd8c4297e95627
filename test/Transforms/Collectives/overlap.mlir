// Ops independent of a collective run during it.
// RUN: tessera-opt %s --dist-overlap-collectives --split-input-file | FileCheck %s

dist.process_mesh @pod(shape = [8], dim_names = ["d"])

// The sum of the first gradient overlaps with the computation of the second.
// CHECK-LABEL: func.func @gradients
// CHECK: %[[FIRST:.*]] = linalg.matmul ins(%arg0, %arg1
// CHECK: %[[TOKEN:.*]] = dist.start
// CHECK-NEXT: %[[SUM:.*]] = dist.all_reduce %[[FIRST]]
// CHECK-NEXT: dist.yield %[[SUM]]
// CHECK: linalg.matmul ins(%arg1, %arg0
// CHECK: %[[WAITED:.*]] = dist.wait %[[TOKEN]]
// CHECK: linalg.add ins(%arg0, %[[WAITED]]
func.func @gradients(%x: tensor<2048x2048xf32>, %y: tensor<2048x2048xf32>) -> (tensor<2048x2048xf32>, tensor<2048x2048xf32>)
    attributes {dist.view = "local"} {
  %zero = arith.constant dense<0.0> : tensor<2048x2048xf32>
  %empty = tensor.empty() : tensor<2048x2048xf32>
  %g = linalg.matmul ins(%x, %y : tensor<2048x2048xf32>, tensor<2048x2048xf32>) outs(%zero : tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  %s = dist.all_reduce %g over @pod ["d"] reduction = sum : tensor<2048x2048xf32>
  %u = linalg.add ins(%x, %s : tensor<2048x2048xf32>, tensor<2048x2048xf32>) outs(%empty : tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  %h = linalg.matmul ins(%y, %x : tensor<2048x2048xf32>, tensor<2048x2048xf32>) outs(%zero : tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  return %u, %h : tensor<2048x2048xf32>, tensor<2048x2048xf32>
}

// -----

dist.process_mesh @pod(shape = [8], dim_names = ["d"])

// No op can run meanwhile: the collective stays synchronous.
// CHECK-LABEL: func.func @chain
// CHECK-NOT: dist.start
func.func @chain(%x: tensor<2048x2048xf32>) -> tensor<2048x2048xf32> attributes {dist.view = "local"} {
  %zero = arith.constant dense<0.0> : tensor<2048x2048xf32>
  %g = linalg.matmul ins(%x, %x : tensor<2048x2048xf32>, tensor<2048x2048xf32>) outs(%zero : tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  %s = dist.all_reduce %g over @pod ["d"] reduction = sum : tensor<2048x2048xf32>
  %h = linalg.matmul ins(%s, %x : tensor<2048x2048xf32>, tensor<2048x2048xf32>) outs(%zero : tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  return %h : tensor<2048x2048xf32>
}

// -----

dist.process_mesh @pod(shape = [8], dim_names = ["d"])

// The second weight is gathered during the first product, not before.
// CHECK-LABEL: func.func @prefetch
// CHECK: %[[FIRST:.*]] = dist.all_gather %arg1
// CHECK-NEXT: %[[TOKEN:.*]] = dist.start
// CHECK-NEXT: dist.all_gather %arg2
// CHECK: linalg.matmul ins(%arg0, %[[FIRST]]
// CHECK-NEXT: %[[SECOND:.*]] = dist.wait %[[TOKEN]]
// CHECK-NEXT: linalg.matmul ins(%{{.*}}, %[[SECOND]]
func.func @prefetch(%x: tensor<4096x2048xf32>, %w: tensor<256x2048xf32>, %v: tensor<256x2048xf32>) -> tensor<4096x2048xf32>
    attributes {dist.view = "local"} {
  %zero = arith.constant dense<0.0> : tensor<4096x2048xf32>
  %w1 = dist.all_gather %w over @pod ["d"] dim = 0 : tensor<256x2048xf32> -> tensor<2048x2048xf32>
  %a = linalg.matmul ins(%x, %w1 : tensor<4096x2048xf32>, tensor<2048x2048xf32>) outs(%zero : tensor<4096x2048xf32>) -> tensor<4096x2048xf32>
  %v1 = dist.all_gather %v over @pod ["d"] dim = 0 : tensor<256x2048xf32> -> tensor<2048x2048xf32>
  %b = linalg.matmul ins(%a, %v1 : tensor<4096x2048xf32>, tensor<2048x2048xf32>) outs(%zero : tensor<4096x2048xf32>) -> tensor<4096x2048xf32>
  return %b : tensor<4096x2048xf32>
}
