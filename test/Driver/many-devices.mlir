// Planning does not compare pairs of devices: 16,384 devices take as long as 8, a million little longer.
// RUN: tessera explain %s | FileCheck %s --check-prefix=MANY
// RUN: sed 's/2048, 8/131072, 8/' %s | tessera explain - | FileCheck %s --check-prefix=MILLION
// RUN: tessera explain %s --function uneven | FileCheck %s --check-prefix=UNEVEN

dist.process_mesh @pod(shape = [2048, 8], dim_names = ["dp", "tp"])

// MANY: mesh @pod dp=2048 x tp=8, 16384 devices
// MANY: x {{.*}} local 64x32
// MANY: total: 1 collective, 114688 bytes on the wire per device
// MILLION: mesh @pod dp=131072 x tp=8, 1048576 devices
// MILLION: x {{.*}} local 1x32
// MILLION: total: 1 collective, 1792 bytes on the wire per device
func.func @main(%x: tensor<131072x256xf32> {dist.name = "x", dist.sharding = #dist.sharding<@pod, [shard(0), shard(1)]>},
                %w: tensor<256x256xf32> {dist.name = "w"})
    -> (tensor<131072x256xf32> {dist.name = "y", dist.sharding = #dist.sharding<@pod, [shard(0), replicate]>}) {
  %zero = arith.constant dense<0.0> : tensor<131072x256xf32>
  %y = linalg.matmul ins(%x, %w : tensor<131072x256xf32>, tensor<256x256xf32>)
                     outs(%zero : tensor<131072x256xf32>) -> tensor<131072x256xf32>
  return %y : tensor<131072x256xf32>
}

// Rows to columns and an uneven gather, in which each device sends to the 7 others of its row of the mesh.
// UNEVEN: all_to_all {{.*}} of 8
// UNEVEN: all_gather {{.*}} of 8
func.func @uneven(%x: tensor<131072x256xf32> {dist.name = "x", dist.sharding = #dist.sharding<@pod, [shard(0), shard(1)]>},
                  %v: tensor<100003xf32> {dist.name = "v", dist.sharding = #dist.sharding<@pod, [replicate, shard(0)]>})
    -> (tensor<131072x256xf32> {dist.name = "y"}, tensor<100003xf32> {dist.name = "u"}) {
  %y = dist.reshard %x to #dist.sharding<@pod, dims = [["dp", "tp"], []]> : tensor<131072x256xf32>
  %u = dist.reshard %v to #dist.sharding<@pod, [replicate, replicate]> : tensor<100003xf32>
  return %y, %u : tensor<131072x256xf32>, tensor<100003xf32>
}
