// Attention with large scores is recognized before differentiation; its derivative keeps no scores.
// Both derivatives are the same.
// RUN: tessera-opt %s --dist-autodiff="function=f name=kept" --dist-autodiff="function=f name=again recomputed-scores=0" | FileCheck %s
// RUN: tessera-opt %s --dist-autodiff="function=f name=kept" --dist-autodiff="function=f name=again recomputed-scores=0" --interpret=function=main

// CHECK-LABEL: func.func private @kept(
// CHECK-NOT: ext.attention
// CHECK-LABEL: func.func private @again(
// CHECK-NOT: math.exp
// CHECK: ext.attention indexing_maps
// CHECK: ext.attention_backward
// CHECK-LABEL: func.func @main
func.func @f(%q: tensor<2x5x3xf64>, %k: tensor<2x5x3xf64>, %v: tensor<2x5x4xf64>) -> tensor<f64> {
  %zero = arith.constant 0.0 : f64
  %scores_init = tensor.empty() : tensor<2x5x5xf64>
  %scores_zero = linalg.fill ins(%zero : f64) outs(%scores_init : tensor<2x5x5xf64>) -> tensor<2x5x5xf64>
  %scores = linalg.contract
      indexing_maps = [affine_map<(b, m, n, f) -> (b, m, f)>, affine_map<(b, m, n, f) -> (b, n, f)>, affine_map<(b, m, n, f) -> (b, m, n)>]
      ins(%q, %k : tensor<2x5x3xf64>, tensor<2x5x3xf64>) outs(%scores_zero : tensor<2x5x5xf64>) -> tensor<2x5x5xf64>
  %least = arith.constant dense<0xFFF0000000000000> : tensor<2x5xf64>
  %largest = linalg.reduce { arith.maximumf } ins(%scores : tensor<2x5x5xf64>) outs(%least : tensor<2x5xf64>) dimensions = [2]
  %largest_all = linalg.broadcast ins(%largest : tensor<2x5xf64>) outs(%scores_init : tensor<2x5x5xf64>) dimensions = [2]
  %below = arith.subf %scores, %largest_all : tensor<2x5x5xf64>
  %weights = math.exp %below : tensor<2x5x5xf64>
  %nothing = arith.constant dense<0.0> : tensor<2x5xf64>
  %total = linalg.reduce { arith.addf } ins(%weights : tensor<2x5x5xf64>) outs(%nothing : tensor<2x5xf64>) dimensions = [2]
  %total_all = linalg.broadcast ins(%total : tensor<2x5xf64>) outs(%scores_init : tensor<2x5x5xf64>) dimensions = [2]
  %shares = arith.divf %weights, %total_all : tensor<2x5x5xf64>
  %init = tensor.empty() : tensor<2x5x4xf64>
  %none = linalg.fill ins(%zero : f64) outs(%init : tensor<2x5x4xf64>) -> tensor<2x5x4xf64>
  %o = linalg.contract
      indexing_maps = [affine_map<(b, m, n, g) -> (b, m, n)>, affine_map<(b, m, n, g) -> (b, n, g)>, affine_map<(b, m, n, g) -> (b, m, g)>]
      ins(%shares, %v : tensor<2x5x5xf64>, tensor<2x5x4xf64>) outs(%none : tensor<2x5x4xf64>) -> tensor<2x5x4xf64>
  %sine = math.sin %o : tensor<2x5x4xf64>
  %start = arith.constant dense<0.0> : tensor<f64>
  %sum = linalg.reduce { arith.addf } ins(%sine : tensor<2x5x4xf64>) outs(%start : tensor<f64>) dimensions = [0, 1, 2]
  return %sum : tensor<f64>
}
func.func private @kept(tensor<2x5x3xf64>, tensor<2x5x3xf64>, tensor<2x5x4xf64>)
    -> (tensor<f64>, tensor<2x5x3xf64>, tensor<2x5x3xf64>, tensor<2x5x4xf64>)
func.func private @again(tensor<2x5x3xf64>, tensor<2x5x3xf64>, tensor<2x5x4xf64>)
    -> (tensor<f64>, tensor<2x5x3xf64>, tensor<2x5x3xf64>, tensor<2x5x4xf64>)

func.func @main(%q: tensor<2x5x3xf64>, %k: tensor<2x5x3xf64>, %v: tensor<2x5x4xf64>) {
  %a:4 = func.call @kept(%q, %k, %v) : (tensor<2x5x3xf64>, tensor<2x5x3xf64>, tensor<2x5x4xf64>)
      -> (tensor<f64>, tensor<2x5x3xf64>, tensor<2x5x3xf64>, tensor<2x5x4xf64>)
  %b:4 = func.call @again(%q, %k, %v) : (tensor<2x5x3xf64>, tensor<2x5x3xf64>, tensor<2x5x4xf64>)
      -> (tensor<f64>, tensor<2x5x3xf64>, tensor<2x5x3xf64>, tensor<2x5x4xf64>)
  check.expect_close %a#0, %b#0 : tensor<f64>
  check.expect_close %a#1, %b#1 : tensor<2x5x3xf64>
  check.expect_close %a#2, %b#2 : tensor<2x5x3xf64>
  check.expect_close %a#3, %b#3 : tensor<2x5x4xf64>
  return
}
