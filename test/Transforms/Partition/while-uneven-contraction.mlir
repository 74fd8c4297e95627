// RUN: tessera-opt %s --tessera-pipeline | FileCheck %s

// The condition depends on an all-reduced value: all devices agree on it (C5). The padding after the 7 rows is masked.
// CHECK: scf.while
// CHECK:   %[[INSIDE:.*]] = arith.cmpi slt, %{{.*}}, %c7
// CHECK:   arith.select %[[INSIDE]], %{{.*}}
// CHECK:   %[[PART:.*]] = linalg.matmul {{.*}}partial(sum)
// CHECK:   %[[SUM:.*]] = dist.all_reduce %[[PART]] over @m ["y"]
// CHECK:   tensor.extract_slice %[[SUM]][0, 0] [1, 1] [1, 1]
// CHECK:   %[[FIRST:.*]] = tensor.extract %
// CHECK:   %[[SIZE:.*]] = math.absf %[[FIRST]]
// CHECK:   %[[GOES_ON:.*]] = arith.cmpf olt, %[[SIZE]], %cst
// CHECK:   scf.condition(%[[GOES_ON]]) %[[SUM]]
dist.process_mesh @m(shape = [3], dim_names = ["y"])
func.func @main(%a: tensor<2x7xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}, %w: tensor<7x2xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %acc: tensor<2x2xf32>) -> (tensor<2x2xf32>) {
  %z = arith.constant 0 : index
  %lim = arith.constant 100.0 : f32
  %q = scf.while (%t = %acc) : (tensor<2x2xf32>) -> (tensor<2x2xf32>) {
    %m = linalg.matmul ins(%a, %w : tensor<2x7xf32>, tensor<7x2xf32>) outs(%t : tensor<2x2xf32>) -> tensor<2x2xf32>
    %e = tensor.extract %m[%z, %z] : tensor<2x2xf32>
    %ab = math.absf %e : f32
    %d = arith.cmpf olt, %ab, %lim : f32
    scf.condition(%d) %m : tensor<2x2xf32>
  } do {
  ^bb0(%t: tensor<2x2xf32>):
    scf.yield %t : tensor<2x2xf32>
  }
  return %q : tensor<2x2xf32>
}
