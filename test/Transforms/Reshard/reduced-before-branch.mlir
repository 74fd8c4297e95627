// RUN: tessera-opt %s --tessera-pipeline="compile-to=resharded" | FileCheck %s
// RUN: tessera run %s --check

// A sum that is reduced before a branch is not reduced again inside of it, as where a step is taken only if all gradients
// are finite. One that only the branch needs is reduced there.
dist.process_mesh @m(shape = [4], dim_names = ["x"])

// CHECK-LABEL: func.func @main(
// CHECK: %[[G:.*]] = linalg.matmul {{.*}}partial(sum)
// CHECK-NEXT: %[[R:.*]] = dist.reshard %[[G]] to #dist.sharding<@m, [replicate]>
// CHECK: %[[H:.*]] = linalg.matmul {{.*}}partial(sum)
// CHECK: scf.if
// CHECK: dist.reshard %[[H]] to #dist.sharding<@m, [replicate]>
// CHECK-NOT: dist.reshard %[[G]]
// CHECK: ins(%[[R]]
// CHECK: return
func.func @main(%a: tensor<8x16xf32> {dist.name = "a", dist.sharding = #dist.sharding<@m, [shard(1)]>}, %b: tensor<16x8xf32> {dist.name = "b"})
    -> (tensor<f32> {dist.name = "sum", dist.sharding = #dist.sharding<@m, [replicate]>},
        tensor<8x8xf32> {dist.name = "next", dist.sharding = #dist.sharding<@m, [replicate]>}) {
  %zero = arith.constant dense<0.0> : tensor<8x8xf32>
  %none = arith.constant dense<0.0> : tensor<f32>
  %limit = arith.constant 1.0e3 : f32
  %g = linalg.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x8xf32>) outs(%zero : tensor<8x8xf32>) -> tensor<8x8xf32>
  %h = linalg.matmul indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>]
      ins(%a, %a : tensor<8x16xf32>, tensor<8x16xf32>) outs(%zero : tensor<8x8xf32>) -> tensor<8x8xf32>
  %s = math.absf %g : tensor<8x8xf32>
  %t = linalg.reduce ins(%s : tensor<8x8xf32>) outs(%none : tensor<f32>) dimensions = [0, 1] (%x: f32, %y: f32) {
    %z = arith.addf %x, %y : f32
    linalg.yield %z : f32
  }
  %e = tensor.extract %t[] : tensor<f32>
  %small = arith.cmpf olt, %e, %limit : f32
  %n = scf.if %small -> (tensor<8x8xf32>) {
    %u = math.tanh %h : tensor<8x8xf32>
    %v = math.exp %g : tensor<8x8xf32>
    %w = arith.addf %u, %v : tensor<8x8xf32>
    scf.yield %w : tensor<8x8xf32>
  } else {
    scf.yield %zero : tensor<8x8xf32>
  }
  return %t, %n : tensor<f32>, tensor<8x8xf32>
}
