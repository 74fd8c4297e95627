// RUN: tessera-opt %s --codegen-prepare --codegen-form-gemms --codegen-form-epilogues --split-input-file | FileCheck %s

// A bias along the rows and a relu, as separate ops.

// CHECK-LABEL: func.func @bias_relu(
// CHECK-SAME: %[[A:.*]]: tensor<4x8xf32>, %[[B:.*]]: tensor<8x6xf32>, %[[BIAS:.*]]: tensor<6xf32>
func.func @bias_relu(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %bias: tensor<6xf32>) -> tensor<4x6xf32> attributes {dist.view = "local"} {
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : tensor<4x6xf32>
  %e = tensor.empty() : tensor<4x6xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  // CHECK: %[[Y:.*]] = rt.product %[[A]], %[[B]] into %{{.*}} bias %[[BIAS]] epilogue "relu" maps
  // CHECK-NOT: maximumf
  // CHECK: return %[[Y]]
  %m = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x6xf32>) outs(%z : tensor<4x6xf32>) -> tensor<4x6xf32>
  %wide = linalg.broadcast ins(%bias : tensor<6xf32>) outs(%e : tensor<4x6xf32>) dimensions = [0]
  %sum = arith.addf %m, %wide : tensor<4x6xf32>
  %y = arith.maximumf %zeros, %sum : tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// -----

// If the sum has other readers, it is the result of the product, and the activation stays separate.

// CHECK-LABEL: func.func @sum_is_read(
func.func @sum_is_read(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %bias: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) attributes {dist.view = "local"} {
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : tensor<4x6xf32>
  %e = tensor.empty() : tensor<4x6xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  // CHECK: %[[SUM:.*]] = rt.product {{.*}} bias %{{.*}} maps
  // CHECK: linalg.generic
  %m = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x6xf32>) outs(%z : tensor<4x6xf32>) -> tensor<4x6xf32>
  %wide = linalg.broadcast ins(%bias : tensor<6xf32>) outs(%e : tensor<4x6xf32>) dimensions = [0]
  %sum = arith.addf %m, %wide : tensor<4x6xf32>
  %y = arith.maximumf %sum, %zeros : tensor<4x6xf32>
  // CHECK: return %{{.*}}, %[[SUM]]
  return %y, %sum : tensor<4x6xf32>, tensor<4x6xf32>
}

// -----

// gelu by tanh, in another form than the library's, with 16-bit results. The library chooses its
// f32 accumulator.

#rows = affine_map<(i, j) -> (i, j)>
#columns = affine_map<(i, j) -> (j)>
// CHECK-LABEL: func.func @gelu(
func.func @gelu(%a: tensor<4x8xbf16>, %b: tensor<8x6xbf16>, %bias: tensor<6xbf16>) -> tensor<2x2x6xbf16> attributes {dist.view = "local"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %h = tensor.empty() : tensor<4x6xbf16>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  // CHECK: rt.product {{.*}} epilogue "gelu" {{.*}} into tensor<4x6xbf16> bias tensor<6xbf16>
  // CHECK-NEXT: tensor.expand_shape
  // CHECK-NOT: math.tanh
  %m = linalg.matmul ins(%a, %b : tensor<4x8xbf16>, tensor<8x6xbf16>) outs(%z : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y = linalg.generic {indexing_maps = [#rows, #columns, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%m, %bias : tensor<4x6xf32>, tensor<6xbf16>) outs(%h : tensor<4x6xbf16>) {
  ^bb0(%x0: f32, %b0: bf16, %out: bf16):
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %c = arith.constant 0.044715 : f32
    %s = arith.constant 0.797884583 : f32
    %b1 = arith.extf %b0 : bf16 to f32
    %x = arith.addf %x0, %b1 : f32
    %xx = arith.mulf %x, %x : f32
    %cxx = arith.mulf %xx, %c : f32
    %t0 = arith.addf %one, %cxx : f32
    %xs = arith.mulf %x, %s : f32
    %t1 = arith.mulf %xs, %t0 : f32
    %t = math.tanh %t1 : f32
    %t2 = arith.addf %t, %one : f32
    %hx = arith.mulf %x, %half : f32
    %g = arith.mulf %t2, %hx : f32
    %r = arith.truncf %g : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<4x6xbf16>
  %v = tensor.expand_shape %y [[0, 1], [2]] output_shape [2, 2, 6] : tensor<4x6xbf16> into tensor<2x2x6xbf16>
  return %v : tensor<2x2x6xbf16>
}

// -----

// Not supported by the library: gelu of f32 (its tanh is not documented to be accurate enough),
// another coefficient, a bias along the columns, a maximum with one. Biases of these are still fused.

#rows = affine_map<(i, j) -> (i, j)>
#down = affine_map<(i, j) -> (i)>
// CHECK-LABEL: func.func @others(
func.func @others(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %bias: tensor<4xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>) attributes {dist.view = "local"} {
  %zero = arith.constant 0.0 : f32
  %ones = arith.constant dense<1.0> : tensor<4x6xf32>
  %e = tensor.empty() : tensor<4x6xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  // CHECK-NOT: rt.product
  %m = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x6xf32>) outs(%z : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%m : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%x: f32, %out: f32):
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %c = arith.constant 0.044715 : f32
    %s = arith.constant 0.797884583 : f32
    %three = arith.constant 3.0 : f32
    %xxx = math.powf %x, %three : f32
    %cxxx = arith.mulf %xxx, %c : f32
    %t0 = arith.addf %x, %cxxx : f32
    %t1 = arith.mulf %t0, %s : f32
    %t = math.tanh %t1 : f32
    %t2 = arith.addf %t, %one : f32
    %hx = arith.mulf %x, %half : f32
    %g = arith.mulf %t2, %hx : f32
    linalg.yield %g : f32
  } -> tensor<4x6xf32>
  %m1 = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x6xf32>) outs(%z : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y1 = arith.maximumf %m1, %ones : tensor<4x6xf32>
  %m2 = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x6xf32>) outs(%z : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y2 = linalg.generic {indexing_maps = [#rows, #down, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%m2, %bias : tensor<4x6xf32>, tensor<4xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%x: f32, %b0: f32, %out: f32):
    %r = arith.addf %x, %b0 : f32
    linalg.yield %r : f32
  } -> tensor<4x6xf32>
  return %y, %y1, %y2 : tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>
}

// -----

// The init of an accumulation stays: the bias is added after it.

// CHECK-LABEL: func.func @accumulates(
// CHECK-SAME: %[[INIT:[a-z0-9]*]]: tensor<4x6xf32>
func.func @accumulates(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %bias: tensor<6xf32>, %c: tensor<4x6xf32>) -> tensor<4x6xf32> attributes {dist.view = "local"} {
  %e = tensor.empty() : tensor<4x6xf32>
  // CHECK: rt.product %{{.*}}, %{{.*}} into %[[INIT]] bias
  %m = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x6xf32>) outs(%c : tensor<4x6xf32>) -> tensor<4x6xf32>
  %wide = linalg.broadcast ins(%bias : tensor<6xf32>) outs(%e : tensor<4x6xf32>) dimensions = [0]
  %sum = arith.addf %wide, %m : tensor<4x6xf32>
  return %sum : tensor<4x6xf32>
}
