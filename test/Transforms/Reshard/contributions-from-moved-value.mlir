// A value needed elsewhere whole and as contributions is moved once: the contributions are made from the moved value.
// RUN: tessera-opt %s --dist-insert-reshards | FileCheck %s

dist.process_mesh @m(shape = [2, 2], dim_names = ["s", "t"])

#id = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: func.func @main(
// CHECK: %[[MOVED:.*]] = dist.reshard %arg0 to #dist.sharding<@m, [shard(1), replicate]>
// CHECK: dist.reshard %[[MOVED]] to #dist.sharding<@m, [shard(1), partial(sum)]>
// CHECK-NOT: dist.reshard %arg0
func.func @main(%x: tensor<4x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0), replicate]>},
                %p: tensor<4x8xf32> {dist.sharding = #dist.sharding<@m, [shard(1), partial(sum)]>})
    -> (tensor<4x8xf32> {dist.sharding = #dist.sharding<@m, [shard(1), replicate]>},
        tensor<4x8xf32> {dist.sharding = #dist.sharding<@m, [shard(1), partial(sum)]>}) {
  %empty = tensor.empty() {dist.op_sharding = #dist.op_sharding<@m, factors = [[], ["s"]]>, dist.shardings = [#dist.sharding<@m, [shard(1), replicate]>]} : tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xf32>) outs(%empty : tensor<4x8xf32>)
      attrs = {dist.op_sharding = #dist.op_sharding<@m, factors = [[], ["s"]]>, dist.shardings = [#dist.sharding<@m, [shard(1), replicate]>]} {
  ^bb0(%a: f32, %o: f32):
    %e = math.exp %a : f32
    linalg.yield %e : f32
  } -> tensor<4x8xf32>
  %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %p : tensor<4x8xf32>, tensor<4x8xf32>) outs(%empty : tensor<4x8xf32>)
      attrs = {dist.op_sharding = #dist.op_sharding<@m, factors = [[], ["s"]], forwards = [sum("t") from [0, 1]]>, dist.shardings = [#dist.sharding<@m, [shard(1), partial(sum)]>]} {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<4x8xf32>
  return %y, %z : tensor<4x8xf32>, tensor<4x8xf32>
}
