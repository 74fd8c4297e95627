// RUN: tessera explain %s | FileCheck %s --check-prefix=PLAN
// RUN: tessera-opt %s --tessera-pipeline="compile-to=resharded" | FileCheck %s
// RUN: tessera run %s --check

// Experts over "e", their inner features over "t". The initial zeros of the second product have another
// sharding than it needs, and must be contributions: they are rematerialized where they are needed,
// never sent. Two exchanges of tokens, 2 * 3/4 * 131072 bytes, and one sum over "t" of 32768 remain.
// CHECK: %[[ZERO:.*]] = arith.constant {{.*}}[shard(0), replicate]{{.*}} : tensor<8x8x32x64xf32>
// CHECK: dist.reshard %[[ZERO]] to #dist.sharding<@mesh, [shard(0), partial(sum)]>
// PLAN: all_to_all {{.*}} 98304 on the wire
// PLAN-NEXT: all_to_all {{.*}} 98304 on the wire
// PLAN-NEXT: all_reduce {{.*}} 32768 on the wire
// PLAN-NEXT: total: 3 collectives, 229376 bytes
dist.process_mesh @mesh(shape = [4, 2], dim_names = ["e", "t"])

#map0 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d1)>
#map1 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d2, d3)>
#map2 = affine_map<(d0, d1, d2, d3, d4) -> (d2, d0, d3, d1)>
#map3 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>
#map4 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d3)>
#map5 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
#map6 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map7 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>
#map8 = affine_map<(d0, d1, d2, d3, d4) -> (d4, d0, d3, d2)>
#map9 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2)>

func.func @main(
    %p_wi: tensor<8x64x128xf32> {dist.sharding = #dist.sharding<@mesh, [shard(0), shard(2)]>},
    %p_wo: tensor<8x128x64xf32> {dist.sharding = #dist.sharding<@mesh, [shard(0), shard(1)]>},
    %disp: tensor<8x64x8x32xf32> {dist.sharding = #dist.sharding<@mesh, [shard(0), replicate]>},
    %x: tensor<8x64x64xf32> {dist.sharding = #dist.sharding<@mesh, [shard(0), replicate]>})
    -> (tensor<8x64x64xf32> {dist.sharding = #dist.sharding<@mesh, [shard(0), replicate]>}) {
  %0 = arith.constant dense<0.0> : tensor<8x8x32x64xf32>
  %1 = linalg.contract indexing_maps = [#map0, #map1, #map2] ins(%x, %disp : tensor<8x64x64xf32>, tensor<8x64x8x32xf32>) outs(%0 : tensor<8x8x32x64xf32>) -> tensor<8x8x32x64xf32>
  %2 = arith.constant dense<0.0> : tensor<8x8x32x128xf32>
  %3 = linalg.contract indexing_maps = [#map3, #map4, #map5] ins(%1, %p_wi : tensor<8x8x32x64xf32>, tensor<8x64x128xf32>) outs(%2 : tensor<8x8x32x128xf32>) -> tensor<8x8x32x128xf32>
  %4 = tensor.empty() : tensor<8x8x32x128xf32>
  %9 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%3 : tensor<8x8x32x128xf32>) outs(%4 : tensor<8x8x32x128xf32>) {
  ^bb0(%5: f32, %6: f32):
    %7 = arith.constant 0.0 : f32
    %8 = arith.maximumf %5, %7 : f32
    linalg.yield %8 : f32
  } -> tensor<8x8x32x128xf32>
  %10 = arith.constant dense<0.0> : tensor<8x8x32x64xf32>
  %11 = linalg.contract indexing_maps = [#map3, #map4, #map5] ins(%9, %p_wo : tensor<8x8x32x128xf32>, tensor<8x128x64xf32>) outs(%10 : tensor<8x8x32x64xf32>) -> tensor<8x8x32x64xf32>
  %12 = arith.constant dense<0.0> : tensor<8x64x64xf32>
  %13 = linalg.contract indexing_maps = [#map7, #map8, #map9] ins(%disp, %11 : tensor<8x64x8x32xf32>, tensor<8x8x32x64xf32>) outs(%12 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
  return %13 : tensor<8x64x64xf32>
}
