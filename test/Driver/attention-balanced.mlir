// A causal ring is balanced if that takes less time: the chunks of 2048 positions that a device
// computes instead of blocks of 4096 halve the work. Without overlap only balanced rings are tried.
// RUN: tessera explain %s | FileCheck %s
// RUN: tessera explain %s --overlap | FileCheck %s
// RUN: tessera explain %s --objective bytes | FileCheck %s --check-prefix=GATHER
// RUN: tessera-opt %s --tessera-pipeline="attention-sequence=ring compile-to=propagated" | FileCheck %s --check-prefix=BALANCED
// RUN: tessera-opt %s --tessera-pipeline="attention-sequence=ring objective=bytes compile-to=propagated" | FileCheck %s --check-prefix=BYTES

// CHECK: parallelism: ring attention ({{[0-9.]+}} us modelled, 17{{[0-9.]*}} us with keys and values gathered
// GATHER: total: 1 collective, 44040192 bytes
// BALANCED: ext.attention {{.*}} attributes {balanced
// BYTES: ext.attention {{.*}} attributes {dist.op_sharding
// BYTES-SAME: ring

dist.process_mesh @line(shape = [8], dim_names = ["s"])
#q = affine_map<(b, m, n, f, g) -> (b, m, f)>
#k = affine_map<(b, m, n, f, g) -> (b, n, f)>
#v = affine_map<(b, m, n, f, g) -> (b, n, g)>
#o = affine_map<(b, m, n, f, g) -> (b, m, g)>
func.func @main(%q: tensor<3x32768x64xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>},
                %k: tensor<3x32768x64xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>},
                %v: tensor<3x32768x64xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>})
    -> (tensor<3x32768x64xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>}) {
  %0 = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%q, %k, %v : tensor<3x32768x64xf32>, tensor<3x32768x64xf32>, tensor<3x32768x64xf32>) {
  ^bb0(%product: f32, %b: index, %m: index, %n: index, %f: index, %g: index):
    %least = arith.constant 0xFF800000 : f32
    %visible = arith.cmpi sge, %m, %n : index
    %score = arith.select %visible, %product, %least : f32
    ext.yield %score : f32
  } -> tensor<3x32768x64xf32>
  return %0 : tensor<3x32768x64xf32>
}
