// RUN: tessera explain %s | FileCheck %s
// RUN: tessera explain %s --comm-fusion "moves=off" | FileCheck %s --check-prefix=APART
// RUN: tessera explain %s --comm-fusion "moves=size moves-config=1" | FileCheck %s
// RUN: not tessera explain %s --comm-fusion "moves=index" 2>&1 | FileCheck %s --check-prefix=INDEX
// RUN: tessera run %s --check --steps 2
// RUN: tessera run %s --check=interpreter
// RUN: tessera run %s --check --overlap --topology %S/../../Driver/Inputs/own_cores.json
// RUN: tessera run %s --check --backend stub --schedule-seed 7
// RUN: tessera-opt %s --tessera-pipeline | FileCheck %s --check-prefix=IR

// Moves in which the same devices meet are joined, of any rank, size and direction: all-to-alls over one axis, permutes
// with the same pairs, exchanges along the same axes. Other element types and axes stay apart.

// CHECK: exchange @m [] of 4 f32 140 B, 44 on the wire
// CHECK-DAG: all_to_all @m [x] of 2 i32 128 B, 64 on the wire
// CHECK-DAG: all_to_all @m [x] of 2 f32 352 B, 176 on the wire {{.*}} required by result 'result0'; required by result 'result1'
// CHECK-DAG: all_to_all @m [y] of 2 f32 160 B, 80 on the wire
// CHECK-DAG: permute @m [x, y] of 4 f32 224 B, 224 on the wire
// CHECK: total: 5 collectives, 588 bytes on the wire
// APART: total: 9 collectives, 588 bytes on the wire
// INDEX: comm_fusion 'moves': mode index is for all-reduce only

// IR-DAG: dist.all_to_all %{{[^,]*}}, %{{[^,]*}} over @m ["x"]
// IR-DAG: dist.permute %{{[^,]*}}, %{{[^,]*}} over @m ["x", "y"]
// IR-DAG: dist.exchange %arg6, %arg6, %arg7, %arg7 from

#x0 = #dist.sharding<@m, [shard(0), replicate]>
#x1 = #dist.sharding<@m, [shard(1), replicate]>
#y0 = #dist.sharding<@m, [replicate, shard(0)]>
#y1 = #dist.sharding<@m, [replicate, shard(1)]>
dist.process_mesh @m(shape = [2, 2], dim_names = ["x", "y"])
func.func @main(%a: tensor<8x6xf32> {dist.sharding = #x0}, %b: tensor<4x8x4xf32> {dist.sharding = #x1},
                %c: tensor<8x6xf32> {dist.sharding = #y0}, %d: tensor<4x8xf32> {dist.sharding = #y1},
                %e: tensor<8x6xf32> {dist.sharding = #x0}, %f: tensor<8x8xf32> {dist.sharding = #x0},
                %g: tensor<8x3xf32> {dist.sharding = #x0}, %h: tensor<6x4xf32> {dist.sharding = #x0},
                %i: tensor<8x8xi32> {dist.sharding = #x0})
    -> (tensor<8x6xf32> {dist.sharding = #x1}, tensor<4x8x4xf32> {dist.sharding = #x0},
        tensor<8x6xf32> {dist.sharding = #y1}, tensor<4x8xf32> {dist.sharding = #y0},
        tensor<8x6xf32> {dist.sharding = #y0}, tensor<8x8xf32> {dist.sharding = #y0},
        tensor<8x3xf32> {dist.sharding = #x0}, tensor<6x4xf32> {dist.sharding = #x0},
        tensor<8x8xi32> {dist.sharding = #x1}) {
  %g1 = tensor.extract_slice %g[7, 0] [1, 3] [1, 1] : tensor<8x3xf32> to tensor<1x3xf32>
  %g2 = tensor.extract_slice %g[0, 0] [7, 3] [1, 1] : tensor<8x3xf32> to tensor<7x3xf32>
  %rolled = tensor.concat dim(0) %g1, %g2 : (tensor<1x3xf32>, tensor<7x3xf32>) -> tensor<8x3xf32>
  %h1 = tensor.extract_slice %h[4, 0] [2, 4] [1, 1] : tensor<6x4xf32> to tensor<2x4xf32>
  %h2 = tensor.extract_slice %h[0, 0] [4, 4] [1, 1] : tensor<6x4xf32> to tensor<4x4xf32>
  %turned = tensor.concat dim(0) %h1, %h2 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<6x4xf32>
  %again = dist.shard_tensor %e, #y0 : tensor<8x6xf32>
  %i1 = dist.shard_tensor %i, #x1 : tensor<8x8xi32>
  return %a, %b, %c, %d, %again, %f, %rolled, %turned, %i1 : tensor<8x6xf32>, tensor<4x8x4xf32>, tensor<8x6xf32>, tensor<4x8xf32>, tensor<8x6xf32>, tensor<8x8xf32>, tensor<8x3xf32>, tensor<6x4xf32>, tensor<8x8xi32>
}
