// RUN: not tessera run %s --check 2>&1 | FileCheck %s
// RUN: not tessera run %s --check=interpreter 2>&1 | FileCheck %s
// RUN: tessera run %s | FileCheck %s --check-prefix=ALONE

// CHECK: check-local-view.mlir:[[@LINE+5]]:{{.*}}: error: the program is in the local view, and --check needs the global view to run it on one device
// CHECK-NOT: error
// ALONE: all_gather     @m [x] of 4  f32  32 B, 24 on the wire
// ALONE: result0  9xf32  checksum
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @main(%a: tensor<2xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>, dist.global_type = tensor<8xf32>}) -> (tensor<3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>, dist.global_type = tensor<9xf32>}) attributes {dist.view = "local", dist.mesh = @m} {
  %0 = dist.all_gather %a over @m ["x"] dim = 0 : tensor<2xf32> -> tensor<8xf32>
  %1 = tensor.extract_slice %0[0][3][1] : tensor<8xf32> to tensor<3xf32>
  return %1 : tensor<3xf32> }
