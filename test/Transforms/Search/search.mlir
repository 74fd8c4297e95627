// A program without annotations: the product is cut, and the result leaves no decision to other passes.
// RUN: tessera-opt %s --dist-normalize --dist-search=devices=8 | FileCheck %s
// RUN: tessera-opt %s --dist-normalize --dist-search="devices=8 mode=recursive_programming" | FileCheck %s
// RUN: tessera-opt %s --dist-normalize --dist-search=devices=8 --dist-insert-reshards | FileCheck %s --check-prefixes=CHECK,INSERTED

// CHECK: module attributes {dist.search = {candidates = {{.*}}, compute = {{.*}}, cost = {{.*}}, lower_bound = {{.*}}, mode = "{{.*}}", parallelisms = {{.*}}, propagation_cost =
// CHECK: dist.process_mesh @mesh
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4096x4096xf32>, %w: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4096x4096xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  // CHECK: linalg.matmul {{.*}}dist.shardings = [#dist.sharding<@mesh, {{.*}}shard(
  %y = linalg.matmul ins(%x, %w : tensor<4096x4096xf32>, tensor<4096x4096xf32>) outs(%f : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  // INSERTED-NOT: dist.reshard
  // CHECK: return
  return %y : tensor<4096x4096xf32>
}
