// Four devices cut a sequence, and two divides the heads: pairs exchange the sequence for heads, and
// gather keys and values of the other pair. By hand: query, key, value and output move half of a part of
// 1 MiB, then key and value of one part arrive: 4 MiB against 6 MiB for keys and values of three devices.
// RUN: tessera explain %s | FileCheck %s
// RUN: tessera run %s --check
// RUN: tessera-opt %s --tessera-pipeline="compile-to=propagated" | FileCheck %s --check-prefix=CUT

// CHECK: total: {{.*}} 4194304 bytes
// CUT: ext.attention {{.*}}factors = {{\[\["s":\(2\)2\], \["s":\(1\)2\], \[\]\]}}>
dist.process_mesh @m(shape = [4], dim_names = ["s"])

#q = affine_map<(h, m, n, f, g) -> (m, h, f)>
#k = affine_map<(h, m, n, f, g) -> (n, h, f)>
#v = affine_map<(h, m, n, f, g) -> (n, h, g)>
#o = affine_map<(h, m, n, f, g) -> (m, h, g)>

func.func @main(%q: tensor<1024x2x512xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                %k: tensor<1024x2x512xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                %v: tensor<1024x2x512xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<1024x2x512xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) {
  %o = ext.attention indexing_maps = [#q, #k, #v, #o]
      ins(%q, %k, %v : tensor<1024x2x512xf32>, tensor<1024x2x512xf32>, tensor<1024x2x512xf32>) {
  ^bb0(%product: f32, %h: index, %m: index, %n: index, %f: index, %g: index):
    %scale = arith.constant 0.04 : f32
    %least = arith.constant 0xFF800000 : f32
    %scaled = arith.mulf %product, %scale : f32
    %visible = arith.cmpi sge, %m, %n : index
    %score = arith.select %visible, %scaled, %least : f32
    ext.yield %score : f32
  } -> tensor<1024x2x512xf32>
  return %o : tensor<1024x2x512xf32>
}
