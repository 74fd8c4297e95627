// Every choice has a remark with its saving and the cost of the runner-up; the module has one with the plan.
// RUN: tessera-opt %s --dist-normalize --dist-search="devices=4" 2>&1 | FileCheck %s

// CHECK: remark: 'x': chose #dist.sharding<@mesh, [{{.*}}]>{{.*}}; runner-up #dist.sharding<@mesh, [{{.*}}]> costs {{.*}} us more
// CHECK: remark: 'w': chose
// CHECK: parallelisms = ["{{data|tensor}} over d0"
func.func @main(%x: tensor<4096x64xf32> {dist.name = "x"}, %w: tensor<64x64xf32> {dist.name = "w"}) -> tensor<4096x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4096x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4096x64xf32>) -> tensor<4096x64xf32>
  %y = linalg.matmul ins(%x, %w : tensor<4096x64xf32>, tensor<64x64xf32>) outs(%f : tensor<4096x64xf32>) -> tensor<4096x64xf32>
  return %y : tensor<4096x64xf32>
}
