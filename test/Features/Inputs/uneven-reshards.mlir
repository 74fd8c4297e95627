// 16 pairs of placements of a 5x3 tensor on a 2x2 mesh, as results of one argument each.
dist.process_mesh @m(shape = [2, 2], dim_names = ["x", "y"])
func.func @main(%a: tensor<5x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0), shard(1)]>},
                %b: tensor<5x3xf32> {dist.sharding = #dist.sharding<@m, [partial(sum), shard(0)]>},
                %c: tensor<5x3xf32> {dist.sharding = #dist.sharding<@m, [shard(1), replicate]>},
                %d: tensor<5x3xf32> {dist.sharding = #dist.sharding<@m, [replicate, partial(sum)]>})
    -> (tensor<5x3xf32> {dist.sharding = #dist.sharding<@m, [replicate, replicate]>},
        tensor<5x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0), shard(1)]>},
        tensor<5x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0), shard(0)]>},
        tensor<5x3xf32> {dist.sharding = #dist.sharding<@m, [shard(1), shard(0)]>}) {
  return %a, %b, %c, %d : tensor<5x3xf32>, tensor<5x3xf32>, tensor<5x3xf32>, tensor<5x3xf32>
}
