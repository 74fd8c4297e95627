// A weight gathered for two distant products is gathered twice if keeping it exceeds the budget,
// each time just before its reader; otherwise once.
// RUN: tessera-opt %s --dist-limit-memory=memory-budget=0.000291 --interpret -o /dev/null
// RUN: tessera-opt %s --dist-limit-memory=memory-budget=0.000291 | FileCheck %s
// RUN: tessera-opt %s --dist-limit-memory=memory-budget=1 | FileCheck %s --check-prefix=ROOM
// RUN: tessera-opt %s --dist-limit-memory | FileCheck %s --check-prefix=ROOM
// RUN: not tessera-opt %s --dist-limit-memory=memory-budget=-1 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: not tessera-opt %s --dist-limit-memory=memory-budget=nan 2>&1 | FileCheck %s --check-prefix=NAN
// WRONG: error: dist-limit-memory: memory-budget -1.00 is not valid: expected a number of GiB, or 0 for no budget
// NAN: error: dist-limit-memory: memory-budget nan is not valid: expected a number of GiB, or 0 for no budget

dist.process_mesh @m(shape = [4], dim_names = ["d"])

// CHECK-LABEL: func.func @main
// CHECK: %[[FIRST:.*]] = dist.all_gather %arg1
// CHECK: linalg.matmul {{.*}}ins(%arg0, %[[FIRST]]
// CHECK: linalg.generic
// CHECK: %[[AGAIN:.*]] = dist.all_gather %arg1 {{.*}}sent again
// CHECK: linalg.matmul {{.*}}ins({{.*}}, %[[AGAIN]]
// ROOM-LABEL: func.func @main
// ROOM-COUNT-1: dist.all_gather
// ROOM-NOT: dist.all_gather
// ROOM: return
func.func @main(%x: tensor<16x64xf32> {dist.sharding = #dist.sharding<@m, [replicate]>},
                %w: tensor<16x64xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                %large: tensor<64x512xf32> {dist.sharding = #dist.sharding<@m, [replicate]>},
                %other: tensor<512x64xf32> {dist.sharding = #dist.sharding<@m, [replicate]>})
    -> (tensor<16x64xf32> {dist.sharding = #dist.sharding<@m, [replicate]>})
    attributes {dist.view = "local", dist.mesh_devices = array<i64: 0, 1, 2, 3>} {
  %whole = dist.all_gather %w over @m ["d"] dim = 0 : tensor<16x64xf32> -> tensor<64x64xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x64xf32>) -> tensor<16x64xf32>
  %h = linalg.matmul ins(%x, %whole : tensor<16x64xf32>, tensor<64x64xf32>)
                     outs(%f : tensor<16x64xf32>) -> tensor<16x64xf32>
  // A value that takes memory in between.
  %e2 = tensor.empty() : tensor<16x512xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<16x512xf32>) -> tensor<16x512xf32>
  %wide = linalg.matmul ins(%h, %large : tensor<16x64xf32>, tensor<64x512xf32>)
                     outs(%f2 : tensor<16x512xf32>) -> tensor<16x512xf32>
  %e3 = tensor.empty() : tensor<16x64xf32>
  %f3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<16x64xf32>) -> tensor<16x64xf32>
  %back = linalg.matmul ins(%wide, %other : tensor<16x512xf32>, tensor<512x64xf32>)
                     outs(%f3 : tensor<16x64xf32>) -> tensor<16x64xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
       ins(%back : tensor<16x64xf32>) outs(%e3 : tensor<16x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.tanh %a : f32
    linalg.yield %t : f32
  } -> tensor<16x64xf32>
  %e4 = tensor.empty() : tensor<16x64xf32>
  %f4 = linalg.fill ins(%zero : f32) outs(%e4 : tensor<16x64xf32>) -> tensor<16x64xf32>
  %y = linalg.matmul ins(%g, %whole : tensor<16x64xf32>, tensor<64x64xf32>)
                     outs(%f4 : tensor<16x64xf32>) -> tensor<16x64xf32>
  return %y : tensor<16x64xf32>
}
