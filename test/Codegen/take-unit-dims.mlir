// A value that a reduction keeps as a dimension of extent 1 is read without the reshape, so that one kernel computes all.
// RUN: tessera-opt %s --codegen-prepare | FileCheck %s
// RUN: tessera-opt %s --codegen-prepare --codegen-fuse | FileCheck %s --check-prefix=FUSED

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#i0 = affine_map<(i, j) -> (i, 0)>

// CHECK-LABEL: func @keep
// CHECK: %[[MOST:.*]] = linalg.generic
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[I:.*]], #{{.*}}], {{.*}} ins(%arg0, %[[MOST]] :
// FUSED-LABEL: func @keep
// FUSED: rt.group
// FUSED-NOT: rt.group
// FUSED: return
func.func @keep(%x: tensor<8x16xf32>) -> tensor<8x16xf32> attributes {dist.view = "local"} {
  %low = arith.constant dense<0xFF800000> : tensor<8xf32>
  %most = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x16xf32>) outs(%low : tensor<8xf32>) {
  ^bb0(%a: f32, %c: f32):
    %m = arith.maximumf %c, %a : f32
    linalg.yield %m : f32
  } -> tensor<8xf32>
  %kept = tensor.expand_shape %most [[0, 1]] output_shape [8, 1] : tensor<8xf32> into tensor<8x1xf32>
  %empty = tensor.empty() : tensor<8x16xf32>
  %y = linalg.generic {indexing_maps = [#ij, #i0, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x, %kept : tensor<8x16xf32>, tensor<8x1xf32>) outs(%empty : tensor<8x16xf32>) {
  ^bb0(%a: f32, %m: f32, %c: f32):
    %d = arith.subf %a, %m : f32
    linalg.yield %d : f32
  } -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// A reshape that splits or merges dimensions stays.
// CHECK-LABEL: func @split
// CHECK: tensor.expand_shape %arg0
func.func @split(%x: tensor<128xf32>) -> tensor<8x16xf32> attributes {dist.view = "local"} {
  %split = tensor.expand_shape %x [[0, 1]] output_shape [8, 16] : tensor<128xf32> into tensor<8x16xf32>
  %empty = tensor.empty() : tensor<8x16xf32>
  %y = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%split : tensor<8x16xf32>) outs(%empty : tensor<8x16xf32>) {
  ^bb0(%a: f32, %c: f32):
    %d = math.exp %a : f32
    linalg.yield %d : f32
  } -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}
