// A look-up in contributions yields contributions, also where it is the one addition of a sum that begins with zero. (Bug: the
// program was rejected after the sum had become a look-up, fuzz seed 743.)
// RUN: tessera-opt %s --tessera-pipeline --codegen -o - | FileCheck %s
// RUN: tessera run %s --check

// CHECK-COUNT-3: rt.collective
// CHECK: tensor.extract
dist.process_mesh @m(shape = [6, 2], dim_names = ["a0", "a1"])
func.func @main(%table: tensor<17xf64> {dist.name = "t"},
    %at: tensor<8x1xindex> {dist.name = "at", dist.range = [0, 17], dist.sharding = #dist.sharding<@m, [shard(1), replicate]>},
    %from: tensor<8xi32> {dist.name = "from", dist.range = [0, 8], dist.sharding = #dist.sharding<@m, [replicate, shard(0)]>})
    -> (tensor<8x1xf64> {dist.name = "y"}) {
  %cut = dist.shard_tensor %table, #dist.sharding<@m, [shard(0, order = 0), shard(0, order = 1)]> : tensor<17xf64>
  %gathered = tensor.gather %cut[%at] gather_dims([0]) : (tensor<17xf64>, tensor<8x1xindex>) -> tensor<8x1xf64>
  %empty = tensor.empty() : tensor<8x1xf64>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%from : tensor<8xi32>) outs(%empty : tensor<8x1xf64>) {
  ^bb0(%in: i32, %out: f64):
    %i = arith.index_cast %in : i32 to index
    %j = linalg.index 1 : index
    %e = tensor.extract %gathered[%i, %j] : tensor<8x1xf64>
    linalg.yield %e : f64
  } -> tensor<8x1xf64>
  return %y : tensor<8x1xf64>
}
