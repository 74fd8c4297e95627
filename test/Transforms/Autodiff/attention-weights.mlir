// The derivative of an attention with dropped weights has the same draws, and equals differences, cut or not.
// RUN: tessera-opt %s --dist-autodiff=seed=argument | FileCheck %s
// RUN: tessera-fuzz --gradients --check %s

#q = affine_map<(b, h, m, n, f, g) -> (b, m, h, f)>
#k = affine_map<(b, h, m, n, f, g) -> (b, n, f)>
#v = affine_map<(b, h, m, n, f, g) -> (b, n, g)>
#o = affine_map<(b, h, m, n, f, g) -> (b, h, m, g)>
#scale = affine_map<(b, h, m, n, f, g) -> (h, n)>

// CHECK-LABEL: func.func @main_grad(
// CHECK: ext.attention indexing_maps
// CHECK: } weights {
// CHECK: ext.attention_backward
// CHECK: } derivative {
// CHECK: } weights {
// CHECK: arith.remui
func.func @main(%q: tensor<2x4x2x3xf64>, %k: tensor<2x4x3xf64>, %v: tensor<2x4x3xf64>) -> tensor<2x2x4x3xf64> {
  %scale = arith.constant dense<[[1.1, 1.2, -1.3, 1.4], [-1.5, 1.6, 1.7, -1.8]]> : tensor<2x4xf64>
  %o = ext.attention indexing_maps = [#q, #k, #v, #scale, #o]
      ins(%q, %k, %v, %scale : tensor<2x4x2x3xf64>, tensor<2x4x3xf64>, tensor<2x4x3xf64>, tensor<2x4xf64>) {
  ^bb0(%product: f64, %x: f64, %b: index, %h: index, %m: index, %n: index, %i4: index, %i5: index):
    %least = arith.constant 0xFFF0000000000000 : f64
    %capped = math.tanh %product : f64
    %visible = arith.cmpi sge, %m, %n : index
    %score = arith.select %visible, %capped, %least : f64
    ext.yield %score : f64
  } weights {
  ^bb0(%share: f64, %x: f64, %b: index, %h: index, %m: index, %n: index, %i4: index, %i5: index):
    %zero = arith.constant 0.0 : f64
    %seven = arith.constant 7 : index
    %three = arith.constant 3 : index
    %one = arith.constant 1 : index
    %m7 = arith.muli %m, %seven : index
    %mn = arith.addi %m7, %n : index
    %mnb = arith.addi %mn, %b : index
    %digit = arith.remui %mnb, %three : index
    %keep = arith.cmpi ne, %digit, %one : index
    %scaled = arith.mulf %share, %x : f64
    %weight = arith.select %keep, %scaled, %zero : f64
    ext.yield %weight : f64
  } -> tensor<2x2x4x3xf64>
  return %o : tensor<2x2x4x3xf64>
}
