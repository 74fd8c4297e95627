// RUN: tessera-opt %s --tessera-pipeline | FileCheck %s
// RUN: tessera run %s --function both_ways --check

// A table computed only from indices is rematerialized wherever it is needed, and never sent.

dist.process_mesh @line(shape = [4], dim_names = ["s"])

// CHECK-LABEL: func.func @both_ways(
// CHECK-COUNT-2: math.cos
// CHECK-NOT: dist.all_
// CHECK-NOT: dist.exchange
// CHECK: return
func.func @both_ways(%x: tensor<8x6xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>})
    -> (tensor<8x6xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>},
        tensor<8x8xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %e = tensor.empty() : tensor<8xf32>
  %i = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<8xf32>) {
  ^bb0(%o: f32):
    %n = linalg.index 0 : index
    %m = arith.index_cast %n : index to i32
    %f = arith.sitofp %m : i32 to f32
    linalg.yield %f : f32
  } -> tensor<8xf32>
  %t = tensor.empty() : tensor<8x8xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]} ins(%i, %i : tensor<8xf32>, tensor<8xf32>) outs(%t : tensor<8x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<8x8xf32>
  %c = math.cos %p : tensor<8x8xf32>
  %zero = arith.constant dense<0.0> : tensor<8x6xf32>
  %u = linalg.contract indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>]
      ins(%c, %x : tensor<8x8xf32>, tensor<8x6xf32>) outs(%zero : tensor<8x6xf32>) -> tensor<8x6xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                         iterator_types = ["parallel", "parallel"]} ins(%c : tensor<8x8xf32>) outs(%t : tensor<8x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %h = arith.addf %a, %a : f32
    linalg.yield %h : f32
  } -> tensor<8x8xf32>
  return %u, %sum : tensor<8x6xf32>, tensor<8x8xf32>
}
