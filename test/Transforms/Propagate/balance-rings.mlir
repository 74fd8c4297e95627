// dist-balance-rings marks causal rings if balancing saves more computation than it adds communication:
// long sequences, not short ones, and no ring without a causal mask or with uncut queries.
// RUN: tessera-opt %s --dist-balance-rings | FileCheck %s
// RUN: tessera-opt %s --dist-balance-rings=remarks=true -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: tessera-opt %s --tessera-pipeline="compile-from=normalized attention-sequence=ring objective=bytes compile-to=propagated" | FileCheck %s --check-prefix=BYTES

// REMARK: remark: balanced causal ring: {{.*}} us to compute and {{.*}} us to move with chunks i and 2n - 1 - i on device i of n, {{.*}} us and {{.*}} us with blocks in order
// REMARK: remark: kept the blocks of a causal ring: {{.*}} us to compute
// REMARK-NOT: remark
// BYTES-NOT: balanced

dist.process_mesh @m(shape = [8], dim_names = ["s"])

#q = affine_map<(h, m, n, f, g) -> (h, m, f)>
#k = affine_map<(h, m, n, f, g) -> (h, n, f)>
#v = affine_map<(h, m, n, f, g) -> (h, n, g)>
#o = affine_map<(h, m, n, f, g) -> (h, m, g)>

// CHECK-LABEL: func.func @long(
// CHECK: ext.attention {{.*}} attributes {balanced, dist.op_sharding
func.func @long(%x: tensor<3x65536x64xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>})
    -> (tensor<3x65536x64xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}) {
  %0 = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%x, %x, %x : tensor<3x65536x64xf32>, tensor<3x65536x64xf32>, tensor<3x65536x64xf32>)
      attributes {ring, dist.op_sharding = #dist.op_sharding<@m, factors = [[], ["s"], []]>, dist.shardings = [#dist.sharding<@m, [shard(1)]>]} {
  ^bb0(%product: f32, %h: index, %m: index, %n: index, %f: index, %g: index):
    %least = arith.constant 0xFF800000 : f32
    %visible = arith.cmpi sge, %m, %n : index
    %score = arith.select %visible, %product, %least : f32
    ext.yield %score : f32
  } -> tensor<3x65536x64xf32>
  return %0 : tensor<3x65536x64xf32>
}

// CHECK-LABEL: func.func @short(
// CHECK: ext.attention
// CHECK-NOT: balanced
func.func @short(%x: tensor<3x64x64xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>})
    -> (tensor<3x64x64xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}) {
  %0 = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%x, %x, %x : tensor<3x64x64xf32>, tensor<3x64x64xf32>, tensor<3x64x64xf32>)
      attributes {ring, dist.op_sharding = #dist.op_sharding<@m, factors = [[], ["s"], []]>, dist.shardings = [#dist.sharding<@m, [shard(1)]>]} {
  ^bb0(%product: f32, %h: index, %m: index, %n: index, %f: index, %g: index):
    %least = arith.constant 0xFF800000 : f32
    %visible = arith.cmpi sge, %m, %n : index
    %score = arith.select %visible, %product, %least : f32
    ext.yield %score : f32
  } -> tensor<3x64x64xf32>
  return %0 : tensor<3x64x64xf32>
}

// CHECK-LABEL: func.func @no_mask(
// CHECK-NOT: balanced
func.func @no_mask(%x: tensor<3x65536x64xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>})
    -> (tensor<3x65536x64xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}) {
  %0 = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%x, %x, %x : tensor<3x65536x64xf32>, tensor<3x65536x64xf32>, tensor<3x65536x64xf32>)
      attributes {ring, dist.op_sharding = #dist.op_sharding<@m, factors = [[], ["s"], []]>, dist.shardings = [#dist.sharding<@m, [shard(1)]>]} {
  ^bb0(%product: f32, %h: index, %m: index, %n: index, %f: index, %g: index):
    ext.yield %product : f32
  } -> tensor<3x65536x64xf32>
  return %0 : tensor<3x65536x64xf32>
}
