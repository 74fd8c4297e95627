// RUN: tessera-opt %s --dist-normalize --verify-diagnostics

dist.process_mesh @a(shape = [2], dim_names = ["x"])
dist.process_mesh @b(shape = [2], dim_names = ["x"], process_ids = [2, 3])

func.func @f(%x: tensor<4xf32> {dist.sharding = #dist.sharding<@a, [shard(0)]>},
             %y: tensor<4xf32> {dist.sharding = #dist.sharding<@b, [shard(0)]>}) -> tensor<4xf32> {
  // expected-error@+1 {{has operands on mesh 'a' and on mesh 'b'; move one with dist.reshard}}
  %0 = arith.addf %x, %y : tensor<4xf32>
  return %0 : tensor<4xf32>
}
