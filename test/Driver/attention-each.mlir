// Each kind of attention has a separate choice: long self attention uses a ring, whose blocks are
// sent during computation; the short keys of cross attention are gathered in one message.
// RUN: tessera explain %s --overlap | FileCheck %s
// RUN: tessera-opt %s --dist-ring-attention=kinds=1 | FileCheck %s --check-prefix=KINDS

// CHECK-COUNT-7: exchange @line
// CHECK-NEXT: all_gather @line
// CHECK-NEXT: total: 8 collectives
// CHECK: parallelism: ring attention (1 of 2 kinds of attentions; {{.*}} us modelled, {{.*}} us with keys and values gathered
// KINDS: ext.attention
// KINDS-NOT: ring
// KINDS: ext.attention {{.*}} attributes {ring}

dist.process_mesh @line(shape = [8], dim_names = ["s"])
#q = affine_map<(b, m, n, f, g) -> (b, m, f)>
#k = affine_map<(b, m, n, f, g) -> (b, n, f)>
#v = affine_map<(b, m, n, f, g) -> (b, n, g)>
#o = affine_map<(b, m, n, f, g) -> (b, m, g)>
func.func @main(%q: tensor<3x32768x64xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>},
                %k: tensor<3x32768x64xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>},
                %v: tensor<3x32768x64xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>},
                %text: tensor<3x64x64xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>})
    -> (tensor<3x32768x64xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>}) {
  %0 = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%q, %k, %v : tensor<3x32768x64xf32>, tensor<3x32768x64xf32>, tensor<3x32768x64xf32>) {
  ^bb0(%product: f32, %b: index, %m: index, %n: index, %f: index, %g: index):
    ext.yield %product : f32
  } -> tensor<3x32768x64xf32>
  %1 = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%0, %text, %text : tensor<3x32768x64xf32>, tensor<3x64x64xf32>, tensor<3x64x64xf32>) {
  ^bb0(%product: f32, %b: index, %m: index, %n: index, %f: index, %g: index):
    ext.yield %product : f32
  } -> tensor<3x32768x64xf32>
  return %1 : tensor<3x32768x64xf32>
}
