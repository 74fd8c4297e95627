// The blocks of a gathered operand, or the sums of a scattered result, go around a ring where that is faster.
// RUN: tessera-opt %s --dist-ring-products --split-input-file | FileCheck %s

dist.process_mesh @pod(shape = [8], dim_names = ["d"])

#left = affine_map<(i, j, k) -> (i, k)>
#right = affine_map<(i, j, k) -> (k, j)>
#result = affine_map<(i, j, k) -> (i, j)>

// Rows are gathered: each block gives rows of the result. The first one is the device's own.
// CHECK: dist.process_mesh @pod_ring(shape = [8], dim_names = ["d"], process_ids = [1, 2, 3, 4, 5, 6, 7, 0])
// CHECK-LABEL: func.func @rows
// CHECK: %[[DEVICE:.*]] = dist.axis_index over @pod ["d"]
// CHECK: %[[OWN:.*]] = arith.muli %[[DEVICE]], %c1024
// CHECK: %[[NEXT:.*]] = dist.permute %arg0 over @pod ["d"] {{.*}}sources = [#dist.sharding<@pod, [shard(0)]>], targets = [#dist.sharding<@pod_ring, [shard(0)]>]
// CHECK: %[[Y:.*]] = linalg.contract {{.*}} ins(%arg0, %arg1
// CHECK: %[[FIRST:.*]] = tensor.insert_slice %[[Y]] into %{{.*}}[%[[OWN]], 0] [1024, 1024]
// CHECK: dist.permute %[[NEXT]]
// CHECK: %[[Z:.*]] = linalg.contract {{.*}} ins(%[[NEXT]], %arg1
// CHECK: tensor.insert_slice %[[Z]] into %[[FIRST]]
// CHECK-COUNT-5: dist.permute
// CHECK-NOT: dist.permute
// CHECK-NOT: dist.all_gather
func.func @rows(%x: tensor<1024x8192xf32>, %w: tensor<8192x1024xf32>) -> tensor<8192x1024xf32> attributes {dist.view = "local"} {
  %zero = arith.constant dense<0.0> : tensor<8192x1024xf32>
  %all = dist.all_gather %x over @pod ["d"] dim = 0 {global_types = [tensor<8192x8192xf32>], sources = [#dist.sharding<@pod, [shard(0)]>], targets = [#dist.sharding<@pod, [replicate]>]} : tensor<1024x8192xf32> -> tensor<8192x8192xf32>
  %y = linalg.contract indexing_maps = [#left, #right, #result] ins(%all, %w : tensor<8192x8192xf32>, tensor<8192x1024xf32>) outs(%zero : tensor<8192x1024xf32>) -> tensor<8192x1024xf32>
  return %y : tensor<8192x1024xf32>
}

// -----

dist.process_mesh @pod(shape = [2, 4], dim_names = ["a", "d"])

#left = affine_map<(i, j, k) -> (i, k)>
#right = affine_map<(i, j, k) -> (k, j)>
#result = affine_map<(i, j, k) -> (i, j)>

// One half of a block's sum is sent while the device adds its contribution to the other half.
// CHECK: dist.process_mesh @pod_ring({{.*}}, process_ids = [1, 2, 3, 0, 5, 6, 7, 4])
// CHECK-LABEL: func.func @scattered
// CHECK: %[[SLICE:.*]] = tensor.extract_slice %arg0[%{{.*}}, 0] [1024, 1024]
// CHECK: %[[ONE:.*]] = linalg.contract {{.*}} ins(%[[SLICE]], %arg1
// CHECK: %[[OTHER:.*]] = linalg.contract
// CHECK: %[[SUM:.*]] = dist.permute %[[ONE]] over @pod ["d"]
// CHECK: linalg.contract {{.*}} outs(%[[SUM]]
// CHECK: dist.permute %[[OTHER]] over @pod ["d"]
// CHECK-COUNT-4: dist.permute
// CHECK-NOT: dist.permute
// CHECK: %[[FIRST:.*]] = tensor.insert_slice %{{.*}} into %{{.*}}[0, 0] [1024, 8192]
// CHECK: tensor.insert_slice %{{.*}} into %[[FIRST]][1024, 0] [1024, 8192]
func.func @scattered(%x: tensor<8192x1024xf32>, %w: tensor<1024x8192xf32>) -> tensor<2048x8192xf32> attributes {dist.view = "local"} {
  %zero = arith.constant dense<0.0> : tensor<8192x8192xf32>
  %y = linalg.contract indexing_maps = [#left, #right, #result] ins(%x, %w : tensor<8192x1024xf32>, tensor<1024x8192xf32>) outs(%zero : tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
  %s = dist.reduce_scatter %y over @pod ["d"] dim = 0 reduction = sum {global_types = [tensor<8192x8192xf32>], sources = [#dist.sharding<@pod, [replicate, partial(sum)]>], targets = [#dist.sharding<@pod, [replicate, shard(0)]>]} : tensor<8192x8192xf32> -> tensor<2048x8192xf32>
  return %s : tensor<2048x8192xf32>
}

// -----

dist.process_mesh @pod(shape = [8], dim_names = ["d"])

#left = affine_map<(i, j, k) -> (i, k)>
#right = affine_map<(i, j, k) -> (k, j)>
#result = affine_map<(i, j, k) -> (i, j)>

// Little is to send: turns would only add latencies.
// CHECK-LABEL: func.func @little
// CHECK: dist.all_gather
// CHECK-NOT: dist.permute
func.func @little(%x: tensor<8x64xf32>, %w: tensor<64x8xf32>) -> tensor<64x8xf32> attributes {dist.view = "local"} {
  %zero = arith.constant dense<0.0> : tensor<64x8xf32>
  %all = dist.all_gather %x over @pod ["d"] dim = 0 {global_types = [tensor<64x64xf32>], sources = [#dist.sharding<@pod, [shard(0)]>], targets = [#dist.sharding<@pod, [replicate]>]} : tensor<8x64xf32> -> tensor<64x64xf32>
  %y = linalg.contract indexing_maps = [#left, #right, #result] ins(%all, %w : tensor<64x64xf32>, tensor<64x8xf32>) outs(%zero : tensor<64x8xf32>) -> tensor<64x8xf32>
  return %y : tensor<64x8xf32>
}

// -----

dist.process_mesh @pod(shape = [8], dim_names = ["d"])

#left = affine_map<(i, j, k) -> (i, k)>
#right = affine_map<(i, j, k) -> (k, j)>
#result = affine_map<(i, j, k) -> (i, j)>

// All devices have this sum: each would add up its terms in another order, and have other bits.
// CHECK-LABEL: func.func @same
// CHECK: dist.all_gather
// CHECK-NOT: dist.permute
func.func @same(%x: tensor<8192x1024xf32>, %w: tensor<8192x1024xf32>) -> tensor<8192x1024xf32> attributes {dist.view = "local"} {
  %zero = arith.constant dense<0.0> : tensor<8192x1024xf32>
  %all = dist.all_gather %x over @pod ["d"] dim = 1 {global_types = [tensor<8192x8192xf32>], sources = [#dist.sharding<@pod, [shard(1)]>], targets = [#dist.sharding<@pod, [replicate]>]} : tensor<8192x1024xf32> -> tensor<8192x8192xf32>
  %y = linalg.contract indexing_maps = [#left, #right, #result] ins(%all, %w : tensor<8192x8192xf32>, tensor<8192x1024xf32>) outs(%zero : tensor<8192x1024xf32>) -> tensor<8192x1024xf32>
  return %y : tensor<8192x1024xf32>
}
