// RUN: tessera-opt %s --verify-roundtrip | FileCheck %s

#rows = #dist.sharding<@pod, [shard(0), replicate]>

// CHECK: dist.process_mesh @pod(shape = [2, 4], dim_names = ["dp", "tp"])
dist.process_mesh @pod(shape = [2, 4], dim_names = ["dp", "tp"])
// CHECK: dist.process_mesh @stage1(shape = [2, 2], dim_names = ["x", "y"], process_ids = [4, 5, 6, 7])
dist.process_mesh @stage1(shape = [2, 2], dim_names = ["x", "y"], process_ids = [4, 5, 6, 7])

// CHECK-LABEL: func.func @annotations(
// CHECK-SAME: {dist.name = "x", dist.sharding =
func.func @annotations(%x: tensor<64x1024xf32> {dist.name = "x", dist.sharding = #dist.sharding<@pod, [shard(0), replicate]>},
                       %n: tensor<4xi32> {dist.range = [0, 7]})
    -> (tensor<64x1024xf32> {dist.sharding = #dist.sharding<@pod, [shard(-1), partial(sum)]>, dist.feeds = 0}) {
  // CHECK: dist.shard_tensor %{{.*}}, #dist.sharding<@pod, [shard(0), ?]> : tensor<64x1024xf32>
  %0 = dist.shard_tensor %x, #dist.sharding<@pod, [shard(0), ?]> : tensor<64x1024xf32>
  // CHECK: dist.shard_tensor %{{.*}}, #dist.sharding<@pod, [shard(0), replicate]> : tensor<64x1024xf32>
  %1 = dist.shard_tensor %0, #rows : tensor<64x1024xf32>
  // CHECK: dist.shard_tensor %{{.*}}, #dist.sharding<@pod, [shard(0, order = 1), shard(0, order = 0)], priority = 2>
  %2 = dist.shard_tensor %1, <@pod, [shard(0, order = 1), shard(0, order = 0)], priority = 2> : tensor<64x1024xf32>
  // CHECK: #dist.sharding<@pod, dims = {{\[}}["dp", "tp":(1)2], []], partial = [sum("tp":(2)2)]>
  %3 = dist.shard_tensor %2, #dist.sharding<@pod, dims = [["dp", "tp":(1)2], []], partial = [sum("tp":(2)2)]> : tensor<64x1024xf32>
  // CHECK: dist.reshard %{{.*}} to #dist.sharding<@stage1, [replicate, replicate]> {dist.reason = "why"} : tensor<64x1024xf32>
  %4 = dist.reshard %3 to #dist.sharding<@stage1, [replicate, replicate]> {dist.reason = "why"} : tensor<64x1024xf32>
  return %4 : tensor<64x1024xf32>
}

// CHECK-LABEL: func.func @windows(
func.func @windows(%x: tensor<8xf32>) -> tensor<10xf32> {
  // CHECK: dist.reshard %{{.*}} to #dist.sharding<@stage1, dims = {{\[}}["x"]], windows = [(0, 6, -1, 4)]> {dist.move = #dist.move<exchange>, fill = 0.000000e+00 : f32} : tensor<8xf32>
  %0 = dist.reshard %x to #dist.sharding<@stage1, dims = [["x"]], windows = [(0, 6, -1, 4)]> {dist.move = #dist.move<exchange>, fill = 0.0 : f32} : tensor<8xf32>
  // CHECK: dist.rearrange {{.*}}dist.op_sharding = #dist.op_sharding<@stage1, factors = {{\[}}["x"]], windows = [(0, 6, 0, 4)]>
  %1 = dist.rearrange %0 dim = 0 segments = [0, 1, 1, 1, 8] fill = 0.0 : f32
      {dist.op_sharding = #dist.op_sharding<@stage1, factors = [["x"]], windows = [(0, 6, 0, 4)]>} : (tensor<8xf32>) -> tensor<10xf32>
  return %1 : tensor<10xf32>
}

// CHECK-LABEL: func.func @collectives(
func.func @collectives(%a: tensor<8x8xf32>) attributes {dist.view = "local"} {
  // CHECK: dist.all_reduce %{{.*}} over @pod ["tp"] reduction = sum : tensor<8x8xf32>
  %0 = dist.all_reduce %a over @pod ["tp"] reduction = sum : tensor<8x8xf32>
  // CHECK: dist.all_reduce %{{.*}}, %{{.*}} over @pod ["dp", "tp"] reduction = max : tensor<8x8xf32>, tensor<8x8xf32>
  %1:2 = dist.all_reduce %a, %0 over @pod ["dp", "tp"] reduction = max : tensor<8x8xf32>, tensor<8x8xf32>
  // CHECK: dist.all_gather %{{.*}} over @pod ["tp"] dim = 1 : tensor<8x8xf32> -> tensor<8x32xf32>
  %2 = dist.all_gather %a over @pod ["tp"] dim = 1 : tensor<8x8xf32> -> tensor<8x32xf32>
  // CHECK: dist.reduce_scatter %{{.*}} over @pod ["dp"] dim = 0 reduction = sum : tensor<8x8xf32> -> tensor<4x8xf32>
  %3 = dist.reduce_scatter %a over @pod ["dp"] dim = 0 reduction = sum : tensor<8x8xf32> -> tensor<4x8xf32>
  // CHECK: dist.all_to_all %{{.*}} over @pod ["tp"] split_dim = 0 concat_dim = 1 : tensor<8x8xf32> -> tensor<2x32xf32>
  %4 = dist.all_to_all %a over @pod ["tp"] split_dim = 0 concat_dim = 1 : tensor<8x8xf32> -> tensor<2x32xf32>
  // CHECK: dist.permute %{{.*}} over @pod ["tp"] permutation = [1, 2, 3, 0] : tensor<8x8xf32>
  %5 = dist.permute %a over @pod ["tp"] permutation = [1, 2, 3, 0] : tensor<8x8xf32>
  // CHECK: dist.broadcast %{{.*}} over @pod ["tp"] root = 0 : tensor<8x8xf32>
  %6 = dist.broadcast %a over @pod ["tp"] root = 0 : tensor<8x8xf32>
  // CHECK: dist.scatter %{{.*}} over @pod ["tp"] dim = 0 root = 1 : tensor<8x8xf32> -> tensor<2x8xf32>
  %7 = dist.scatter %a over @pod ["tp"] dim = 0 root = 1 : tensor<8x8xf32> -> tensor<2x8xf32>
  // CHECK: dist.gather %{{.*}} over @pod ["tp"] dim = 0 root = 1 : tensor<8x8xf32> -> tensor<32x8xf32>
  %8 = dist.gather %a over @pod ["tp"] dim = 0 root = 1 : tensor<8x8xf32> -> tensor<32x8xf32>
  // CHECK: dist.reduce %{{.*}} over @pod ["tp"] root = 2 reduction = min : tensor<8x8xf32>
  %9 = dist.reduce %a over @pod ["tp"] root = 2 reduction = min : tensor<8x8xf32>
  // CHECK: dist.halo_exchange %{{.*}} over @pod ["tp"] dim = 0 low = 1 high = 2 {fill = 0.000000e+00 : f32} : tensor<8x8xf32> -> tensor<11x8xf32>
  %10 = dist.halo_exchange %a over @pod ["tp"] dim = 0 low = 1 high = 2 {fill = 0.0 : f32} : tensor<8x8xf32> -> tensor<11x8xf32>
  // CHECK: dist.slice %{{.*}} over @pod ["tp"] dim = 1 : tensor<8x8xf32> -> tensor<8x2xf32>
  %11 = dist.slice %a over @pod ["tp"] dim = 1 : tensor<8x8xf32> -> tensor<8x2xf32>
  // CHECK: dist.make_partial %{{.*}} over @pod ["tp"] reduction = sum : tensor<8x8xf32>
  %12 = dist.make_partial %a over @pod ["tp"] reduction = sum : tensor<8x8xf32>
  // CHECK: dist.exchange %{{.*}} from #dist.sharding<@pod, [shard(0)]> to #dist.sharding<@pod, [shard(1)]> : tensor<8x8xf32> -> tensor<16x4xf32>
  %13 = dist.exchange %a from #dist.sharding<@pod, [shard(0)]> to #dist.sharding<@pod, [shard(1)]> : tensor<8x8xf32> -> tensor<16x4xf32>
  // CHECK: dist.send %{{.*}} to @stage1 id = 3
  dist.send %a to @stage1 id = 3 {source = #dist.sharding<@pod, [shard(0), replicate]>, target = #dist.sharding<@stage1, [shard(0), replicate]>, global_type = tensor<16x8xf32>} : tensor<8x8xf32>
  // CHECK: dist.recv from @stage1 id = 4
  %14 = dist.recv from @stage1 id = 4 {source = #dist.sharding<@stage1, [replicate, replicate]>, target = #dist.sharding<@pod, [replicate, replicate]>, global_type = tensor<8x8xf32>} : tensor<8x8xf32>
  // CHECK: %[[T:.*]] = dist.start {
  %t = dist.start {
    %r = dist.all_reduce %a over @pod ["tp"] reduction = sum : tensor<8x8xf32>
    dist.yield %r : tensor<8x8xf32>
  } : !dist.token<tensor<8x8xf32>>
  // CHECK: dist.wait %[[T]] : !dist.token<tensor<8x8xf32>> -> tensor<8x8xf32>
  %q = dist.wait %t : !dist.token<tensor<8x8xf32>> -> tensor<8x8xf32>
  // CHECK: dist.axis_index over @pod ["tp"] : index
  %i = dist.axis_index over @pod ["tp"] : index
  return
}
