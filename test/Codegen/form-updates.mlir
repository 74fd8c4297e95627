// A step of gradient descent adds the product to the weight, which is neither copied nor read twice; the weight changes
// after its last other reader. Everything else keeps the gradient.
// RUN: tessera-opt %s --codegen-form-updates --split-input-file | FileCheck %s

// The gradient of the input reads the weight after the product.
// CHECK-LABEL: func.func @step
// CHECK-SAME: %[[W:.*]]: tensor<64x32xf32>, %[[X:.*]]: tensor<2x64xf32>, %[[DY:.*]]: tensor<2x32xf32>
// CHECK: %[[DX:.*]] = linalg.contract {{.*}} ins(%[[DY]], %[[W]]
// CHECK: %[[SCALED:.*]] = linalg.generic {{.*}} ins(%[[DY]] :
// CHECK: arith.constant -1.000000e-01
// CHECK: %[[NEW:.*]] = linalg.contract {{.*}} ins(%[[X]], %[[SCALED]] : {{.*}}) outs(%[[W]] :
// CHECK-NOT: linalg
// CHECK: return %[[NEW]], %[[DX]]
#x = affine_map<(i, j, b) -> (b, i)>
#dy = affine_map<(i, j, b) -> (b, j)>
#w = affine_map<(i, j, b) -> (i, j)>
#id = affine_map<(i, j) -> (i, j)>
func.func @step(%w: tensor<64x32xf32>, %x: tensor<2x64xf32>, %dy: tensor<2x32xf32>)
    -> (tensor<64x32xf32> {dist.feeds = 0}, tensor<2x64xf32>) attributes {dist.view = "local"} {
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %g = linalg.contract indexing_maps = [#x, #dy, #w] ins(%x, %dy : tensor<2x64xf32>, tensor<2x32xf32>)
      outs(%zero : tensor<64x32xf32>) -> tensor<64x32xf32>
  %none = arith.constant dense<0.0> : tensor<2x64xf32>
  %dx = linalg.contract indexing_maps = [affine_map<(b, i, j) -> (b, j)>, affine_map<(b, i, j) -> (i, j)>, affine_map<(b, i, j) -> (b, i)>]
      ins(%dy, %w : tensor<2x32xf32>, tensor<64x32xf32>) outs(%none : tensor<2x64xf32>) -> tensor<2x64xf32>
  %e = tensor.empty() : tensor<64x32xf32>
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%g : tensor<64x32xf32>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    %rate = arith.constant 0.2 : f32
    %0 = arith.mulf %in, %rate : f32
    linalg.yield %0 : f32
  } -> tensor<64x32xf32>
  %new = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w, %s : tensor<64x32xf32>, tensor<64x32xf32>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%in: f32, %step: f32, %out: f32):
    %two = arith.constant 2.0 : f32
    %0 = arith.divf %step, %two : f32
    %1 = arith.subf %in, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<64x32xf32>
  return %new, %dx : tensor<64x32xf32>, tensor<2x64xf32>
}

// -----

// The gradient is a result, too.
// CHECK-LABEL: func.func @kept
// CHECK: linalg.contract {{.*}} outs(%{{(cst|zero).*}} :
// CHECK: linalg.generic
#x = affine_map<(i, j, b) -> (b, i)>
#dy = affine_map<(i, j, b) -> (b, j)>
#w = affine_map<(i, j, b) -> (i, j)>
#id = affine_map<(i, j) -> (i, j)>
func.func @kept(%w: tensor<64x32xf32>, %x: tensor<2x64xf32>, %dy: tensor<2x32xf32>)
    -> (tensor<64x32xf32> {dist.feeds = 0}, tensor<64x32xf32>) attributes {dist.view = "local"} {
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %g = linalg.contract indexing_maps = [#x, #dy, #w] ins(%x, %dy : tensor<2x64xf32>, tensor<2x32xf32>)
      outs(%zero : tensor<64x32xf32>) -> tensor<64x32xf32>
  %e = tensor.empty() : tensor<64x32xf32>
  %new = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w, %g : tensor<64x32xf32>, tensor<64x32xf32>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%in: f32, %step: f32, %out: f32):
    %0 = arith.subf %in, %step : f32
    linalg.yield %0 : f32
  } -> tensor<64x32xf32>
  return %new, %g : tensor<64x32xf32>, tensor<64x32xf32>
}

// -----

// The weight decays: its factor is not one. With a batch larger than the weight, a scaled copy costs more than the product.
// CHECK-LABEL: func.func @decays
// CHECK: linalg.contract {{.*}} outs(%{{(cst|zero).*}} :
// CHECK: linalg.generic
// CHECK: linalg.contract {{.*}} outs(%{{(cst|many).*}} :
// CHECK: linalg.generic
#x = affine_map<(i, j, b) -> (b, i)>
#dy = affine_map<(i, j, b) -> (b, j)>
#w = affine_map<(i, j, b) -> (i, j)>
#id = affine_map<(i, j) -> (i, j)>
func.func @decays(%w: tensor<64x32xf32>, %x: tensor<2x64xf32>, %dy: tensor<2x32xf32>, %v: tensor<16x16xf32>, %y: tensor<64x16xf32>, %dz: tensor<64x16xf32>)
    -> (tensor<64x32xf32> {dist.feeds = 0}, tensor<16x16xf32> {dist.feeds = 3}) attributes {dist.view = "local"} {
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %g = linalg.contract indexing_maps = [#x, #dy, #w] ins(%x, %dy : tensor<2x64xf32>, tensor<2x32xf32>)
      outs(%zero : tensor<64x32xf32>) -> tensor<64x32xf32>
  %e = tensor.empty() : tensor<64x32xf32>
  %new = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w, %g : tensor<64x32xf32>, tensor<64x32xf32>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%in: f32, %step: f32, %out: f32):
    %keep = arith.constant 0.99 : f32
    %0 = arith.mulf %in, %keep : f32
    %1 = arith.subf %0, %step : f32
    linalg.yield %1 : f32
  } -> tensor<64x32xf32>
  %many = arith.constant dense<0.0> : tensor<16x16xf32>
  %h = linalg.contract indexing_maps = [#x, #dy, #w] ins(%y, %dz : tensor<64x16xf32>, tensor<64x16xf32>)
      outs(%many : tensor<16x16xf32>) -> tensor<16x16xf32>
  %f = tensor.empty() : tensor<16x16xf32>
  %next = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%v, %h : tensor<16x16xf32>, tensor<16x16xf32>) outs(%f : tensor<16x16xf32>) {
  ^bb0(%in: f32, %step: f32, %out: f32):
    %0 = arith.subf %in, %step : f32
    linalg.yield %0 : f32
  } -> tensor<16x16xf32>
  return %new, %next : tensor<64x32xf32>, tensor<16x16xf32>
}
