// RUN: tessera-opt %s --tessera-pipeline --codegen | FileCheck %s

// Scores that the program computes a second time, after ops that need the first ones, stay there:
// their kernel reads only one number per row from the first kernel, which does not justify fusion.
// CHECK: rt.gemm %q, %k
// CHECK: rt.gemm {{.*}}, %v
// CHECK: rt.gemm {{.*}}, %w
// CHECK: rt.gemm %q, %k
// CHECK: rt.launch @{{.*}}sub_exp
func.func @main(%q: tensor<64x16xf32> {dist.name = "q"}, %k: tensor<16x64xf32> {dist.name = "k"}, %v: tensor<64x32xf32> {dist.name = "v"},
                %w: tensor<32x32xf32> {dist.name = "w"}) -> tensor<64x32xf32> {
  %zeros = arith.constant dense<0.0> : tensor<64x64xf32>
  %none = arith.constant dense<0.0> : tensor<64x32xf32>
  %least = arith.constant dense<0xFF800000> : tensor<64xf32>
  %e = tensor.empty() : tensor<64x64xf32>
  %s = linalg.matmul ins(%q, %k : tensor<64x16xf32>, tensor<16x64xf32>) outs(%zeros : tensor<64x64xf32>) -> tensor<64x64xf32>
  %top = linalg.reduce { arith.maximumf } ins(%s : tensor<64x64xf32>) outs(%least : tensor<64xf32>) dimensions = [1]
  %tops = linalg.broadcast ins(%top : tensor<64xf32>) outs(%e : tensor<64x64xf32>) dimensions = [1]
  %below = arith.subf %s, %tops : tensor<64x64xf32>
  %p = math.exp %below : tensor<64x64xf32>
  %o = linalg.matmul ins(%p, %v : tensor<64x64xf32>, tensor<64x32xf32>) outs(%none : tensor<64x32xf32>) -> tensor<64x32xf32>
  %y = linalg.matmul ins(%o, %w : tensor<64x32xf32>, tensor<32x32xf32>) outs(%none : tensor<64x32xf32>) -> tensor<64x32xf32>
  %again = linalg.matmul ins(%q, %k : tensor<64x16xf32>, tensor<16x64xf32>) outs(%zeros : tensor<64x64xf32>) -> tensor<64x64xf32>
  %p_again = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
                             iterator_types = ["parallel", "parallel"]}
      ins(%again, %top : tensor<64x64xf32>, tensor<64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%x: f32, %most: f32, %out: f32):
    %less = arith.subf %x, %most : f32
    %share = math.exp %less : f32
    linalg.yield %share : f32
  } -> tensor<64x64xf32>
  %d = linalg.matmul ins(%p_again, %y : tensor<64x64xf32>, tensor<64x32xf32>) outs(%none : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %d : tensor<64x32xf32>
}
