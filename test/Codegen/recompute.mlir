// Kernels rematerialize large elementwise values from their operands instead of reading them.
// RUN: tessera-opt %s --codegen-fuse="recompute=4194304" --split-input-file | FileCheck %s
// RUN: tessera-opt %s --codegen-fuse --split-input-file | FileCheck %s --check-prefix=KEPT
//
// Not if they are smaller than asked for, or take more functions than a processor computes while it reads.
// RUN: tessera-opt %s --codegen-fuse="recompute=16777216" --split-input-file | FileCheck %s --check-prefix=KEPT
// RUN: tessera-opt %s --codegen-fuse="recompute=4194304 recomputed-functions=0" --split-input-file | FileCheck %s --check-prefix=KEPT

// One kernel sums the exponentials of a softmax and another scales them, with a step between.

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#k = affine_map<(i) -> (i)>
// CHECK-LABEL: func.func @softmax(
// CHECK-SAME: %[[X:.*]]: tensor<1024x2048xf32>, %[[M:.*]]: tensor<1024xf32>
// CHECK: %[[SUM:.*]] = rt.group "sub_exp_add"
// CHECK: math.exp
// CHECK: } : tensor<1024xf32>
// CHECK: dist.all_reduce %[[SUM]]
// CHECK: rt.group "sub_exp_div"
// CHECK: ins(%[[X]], %[[M]]
// CHECK: math.exp
// CHECK: arith.divf
// KEPT-LABEL: func.func @softmax(
// KEPT-COUNT-1: math.exp
// KEPT-NOT: math.exp
dist.process_mesh @m(shape = [2], dim_names = ["x"])
func.func @softmax(%x: tensor<1024x2048xf32>, %most: tensor<1024xf32>) -> tensor<1024x2048xf32> attributes {dist.view = "local"} {
  %empty = tensor.empty() : tensor<1024x2048xf32>
  %zero = arith.constant dense<0.0> : tensor<1024xf32>
  %e = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x, %most : tensor<1024x2048xf32>, tensor<1024xf32>) outs(%empty : tensor<1024x2048xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.subf %a, %b : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<1024x2048xf32>
  %sum = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%e : tensor<1024x2048xf32>) outs(%zero : tensor<1024xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %o, %a : f32
    linalg.yield %0 : f32
  } -> tensor<1024xf32>
  %all = dist.all_reduce %sum over @m ["x"] reduction = sum : tensor<1024xf32>
  %y = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%e, %all : tensor<1024x2048xf32>, tensor<1024xf32>) outs(%empty : tensor<1024x2048xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.divf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<1024x2048xf32>
  return %y : tensor<1024x2048xf32>
}
