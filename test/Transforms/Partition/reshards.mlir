// RUN: tessera-opt %s --tessera-pipeline="compile-to=partitioned" | FileCheck %s

dist.process_mesh @m(shape = [2, 4], dim_names = ["x", "y"])

// CHECK-LABEL: func.func @slice(
// CHECK: dist.slice %{{.*}} over @m ["y"] dim = 1
func.func @slice(%a: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0), replicate]>})
    -> (tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0), shard(1)]>}) {
  return %a : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @gather(
// CHECK: dist.all_gather %{{.*}} over @m ["y"] dim = 1
func.func @gather(%a: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0), shard(1)]>})
    -> (tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0), replicate]>}) {
  return %a : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @all_to_all(
// CHECK: dist.all_to_all %{{.*}} over @m ["y"] split_dim = 1 concat_dim = 0
func.func @all_to_all(%a: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [replicate, shard(0)]>})
    -> (tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [replicate, shard(1)]>}) {
  return %a : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @reduce_scatter(
// CHECK: dist.reduce_scatter %{{.*}} over @m ["y"] dim = 1 reduction = sum
func.func @reduce_scatter(%a: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [replicate, partial(sum)]>})
    -> (tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [replicate, shard(1)]>}) {
  return %a : tensor<8x8xf32>
}

// One group over both axes.
// CHECK-LABEL: func.func @all_reduce(
// CHECK: dist.all_reduce %{{.*}} over @m ["x", "y"] reduction = sum
func.func @all_reduce(%a: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [partial(sum), partial(sum)]>})
    -> (tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [replicate, replicate]>}) {
  return %a : tensor<8x8xf32>
}

// The axes are exchanged: no single collective does that.
// CHECK-LABEL: func.func @exchange(
// CHECK: dist.exchange
func.func @exchange(%a: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0), shard(1)]>})
    -> (tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(1), shard(0)]>}) {
  return %a : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @make_partial(
// CHECK: dist.make_partial %{{.*}} over @m ["y"] reduction = max
func.func @make_partial(%a: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [replicate, replicate]>})
    -> (tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [replicate, partial(max)]>}) {
  return %a : tensor<8x8xf32>
}
