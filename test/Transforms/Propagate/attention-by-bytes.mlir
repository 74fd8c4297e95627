// Eight devices cut a sequence, and neither batch (2) nor heads (6) alone can be cut over all of them. By bytes, groups
// of four devices exchange the sequence for both, and key and value of the other group arrive. By hand: query, key,
// value and output move 3/4 of a part of 6 KiB, then two parts arrive: 30 KiB. By time, such small parts are gathered.
// RUN: tessera explain %s --objective bytes | FileCheck %s --check-prefix=BYTES
// RUN: tessera explain %s | FileCheck %s --check-prefix=TIME
// RUN: tessera-opt %s --tessera-pipeline="compile-to=propagated objective=bytes" | FileCheck %s --check-prefix=CUT
// RUN: tessera run %s --objective bytes --check

// BYTES: total: {{.*}} 30720 bytes
// TIME: total: {{.*}} 86016 bytes
// CUT: ext.attention {{.*}}factors = {{\[\["s":\(4\)2\], \["s":\(2\)2\], \["s":\(1\)2\], \[\]\]}}>
dist.process_mesh @m(shape = [8], dim_names = ["s"])

#q = affine_map<(b, h, m, n, f, g) -> (b, m, h, f)>
#k = affine_map<(b, h, m, n, f, g) -> (b, n, h, f)>
#v = affine_map<(b, h, m, n, f, g) -> (b, n, h, g)>
#o = affine_map<(b, h, m, n, f, g) -> (b, m, h, g)>

func.func @main(%q: tensor<2x64x6x16xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                %k: tensor<2x64x6x16xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                %v: tensor<2x64x6x16xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>})
    -> (tensor<2x64x6x16xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}) {
  %o = ext.attention indexing_maps = [#q, #k, #v, #o]
      ins(%q, %k, %v : tensor<2x64x6x16xf32>, tensor<2x64x6x16xf32>, tensor<2x64x6x16xf32>) {
  ^bb0(%product: f32, %b: index, %h: index, %m: index, %n: index, %f: index, %g: index):
    ext.yield %product : f32
  } -> tensor<2x64x6x16xf32>
  return %o : tensor<2x64x6x16xf32>
}
