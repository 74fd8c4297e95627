// A product and the collective of its operand, or of its result, are cut along another loop of the product.
// RUN: tessera-opt %s --dist-decompose-products --split-input-file | FileCheck %s

dist.process_mesh @pod(shape = [8], dim_names = ["d"])

#left = affine_map<(i, j, k) -> (i, k)>
#right = affine_map<(i, j, k) -> (k, j)>
#result = affine_map<(i, j, k) -> (i, j)>

// CHECK-LABEL: func.func @gathered
// CHECK: %[[SLICE:.*]] = tensor.extract_slice %arg1[0, 0] [1024, [[PART:[0-9]+]]]
// CHECK: %[[FIRST:.*]] = dist.all_gather %[[SLICE]] {{.*}}global_types = [tensor<8192x[[PART]]xf32>]{{.*}}part = 0
// CHECK: %[[Y:.*]] = linalg.contract {{.*}} ins(%arg0, %[[FIRST]]
// CHECK: tensor.insert_slice %[[Y]] into %{{.*}}[0, 0]
// CHECK: dist.all_gather {{.*}}part = 1
// CHECK: linalg.contract
// CHECK: tensor.insert_slice {{.*}}[0, [[PART]]]
func.func @gathered(%x: tensor<8192x8192xf32>, %w: tensor<1024x8192xf32>) -> tensor<8192x8192xf32> attributes {dist.view = "local"} {
  %zero = arith.constant dense<0.0> : tensor<8192x8192xf32>
  %all = dist.all_gather %w over @pod ["d"] dim = 0 {global_types = [tensor<8192x8192xf32>], sources = [#dist.sharding<@pod, [shard(0)]>], targets = [#dist.sharding<@pod, [replicate]>]} : tensor<1024x8192xf32> -> tensor<8192x8192xf32>
  %y = linalg.contract indexing_maps = [#left, #right, #result] ins(%x, %all : tensor<8192x8192xf32>, tensor<8192x8192xf32>) outs(%zero : tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
  return %y : tensor<8192x8192xf32>
}

// -----

dist.process_mesh @pod(shape = [8], dim_names = ["d"])

#left = affine_map<(i, j, k) -> (i, k)>
#right = affine_map<(i, j, k) -> (k, j)>
#result = affine_map<(i, j, k) -> (i, j)>

// CHECK-LABEL: func.func @scattered
// CHECK: %[[SLICE:.*]] = tensor.extract_slice %arg1[0, 0] [1024, [[PART:[0-9]+]]]
// CHECK: %[[Y:.*]] = linalg.contract {{.*}} ins(%arg0, %[[SLICE]]
// CHECK: %[[SUM:.*]] = dist.reduce_scatter %[[Y]]
// CHECK: tensor.insert_slice %[[SUM]] into %{{.*}}[0, 0]
// CHECK: dist.reduce_scatter
func.func @scattered(%x: tensor<8192x1024xf32>, %w: tensor<1024x8192xf32>) -> tensor<1024x8192xf32> attributes {dist.view = "local"} {
  %zero = arith.constant dense<0.0> : tensor<8192x8192xf32>
  %y = linalg.contract indexing_maps = [#left, #right, #result] ins(%x, %w : tensor<8192x1024xf32>, tensor<1024x8192xf32>) outs(%zero : tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
  %s = dist.reduce_scatter %y over @pod ["d"] dim = 0 reduction = sum {global_types = [tensor<8192x8192xf32>], sources = [#dist.sharding<@pod, [partial(sum)]>], targets = [#dist.sharding<@pod, [shard(0)]>]} : tensor<8192x8192xf32> -> tensor<1024x8192xf32>
  return %s : tensor<1024x8192xf32>
}

// -----

dist.process_mesh @pod(shape = [8], dim_names = ["d"])

#left = affine_map<(i, j, k) -> (i, k)>
#right = affine_map<(i, j, k) -> (k, j)>
#result = affine_map<(i, j, k) -> (i, j)>

// A small transfer: parts would only add latencies.
// CHECK-LABEL: func.func @little
// CHECK: dist.all_gather
// CHECK-NOT: dist.all_gather
func.func @little(%x: tensor<8x64xf32>, %w: tensor<8x64xf32>) -> tensor<8x64xf32> attributes {dist.view = "local"} {
  %zero = arith.constant dense<0.0> : tensor<8x64xf32>
  %all = dist.all_gather %w over @pod ["d"] dim = 0 {global_types = [tensor<64x64xf32>], sources = [#dist.sharding<@pod, [shard(0)]>], targets = [#dist.sharding<@pod, [replicate]>]} : tensor<8x64xf32> -> tensor<64x64xf32>
  %y = linalg.contract indexing_maps = [#left, #right, #result] ins(%x, %all : tensor<8x64xf32>, tensor<64x64xf32>) outs(%zero : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}
