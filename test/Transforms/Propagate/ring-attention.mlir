// dist-ring-attention marks candidates for rings; propagation then cuts keys and values like the queries.
// RUN: tessera-opt %s --dist-ring-attention=remarks=true --verify-diagnostics | FileCheck %s
// RUN: tessera-opt %s --tessera-pipeline="attention-sequence=ring compile-to=propagated" | FileCheck %s --check-prefix=PROPAGATED
// RUN: not tessera-opt %s --tessera-pipeline="attention-sequence=rings" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not tessera explain %s --attention-sequence rings 2>&1 | FileCheck %s --check-prefix=OPTION

// UNKNOWN: error: attention sequence 'rings' is not one of auto, gather, ring
// OPTION: --attention-sequence: {{.*}}rings

dist.process_mesh @m(shape = [4], dim_names = ["s"])

#q = affine_map<(m, n, f, g) -> (m, f)>
#k = affine_map<(m, n, f, g) -> (n, f)>
#v = affine_map<(m, n, f, g) -> (n, g)>
#o = affine_map<(m, n, f, g) -> (m, g)>

// CHECK-LABEL: func.func @self(
// CHECK: ext.attention {{.*}} attributes {ring}
// PROPAGATED-LABEL: func.func @self(
// PROPAGATED: ext.attention {{.*}} attributes {dist.op_sharding = #dist.op_sharding<@m, factors = {{\[\[}}"s"], []]>
// PROPAGATED-SAME: ring
func.func @self(%x: tensor<64x4xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> tensor<64x4xf32> {
  %0 = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%x, %x, %x : tensor<64x4xf32>, tensor<64x4xf32>, tensor<64x4xf32>) {
  ^bb0(%product: f32, %m: index, %n: index, %f: index, %g: index):
    ext.yield %product : f32
  } -> tensor<64x4xf32>
  return %0 : tensor<64x4xf32>
}

// CHECK-LABEL: func.func @cross(
// CHECK: ext.attention {{.*}} attributes {ring}
// PROPAGATED-LABEL: func.func @cross(
// PROPAGATED: ext.attention {{.*}} attributes {dist.op_sharding = #dist.op_sharding<@m, factors = {{\[\[}}"s"], []]>
// PROPAGATED-SAME: ring
func.func @cross(%q: tensor<64x4xf32>, %k: tensor<30x4xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> tensor<64x4xf32> {
  %0 = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%q, %k, %k : tensor<64x4xf32>, tensor<30x4xf32>, tensor<30x4xf32>) {
  ^bb0(%product: f32, %m: index, %n: index, %f: index, %g: index):
    ext.yield %product : f32
  } -> tensor<64x4xf32>
  return %0 : tensor<64x4xf32>
}

// CHECK-LABEL: func.func @decoding(
// CHECK-NOT: ring
func.func @decoding(%q: tensor<1x4xf32>, %k: tensor<32x4xf32>) -> tensor<1x4xf32> {
  // expected-remark @+1 {{no ring: the attention has one query, and a ring cuts queries along with keys; cut keys, and each device attends to its own}}
  %0 = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%q, %k, %k : tensor<1x4xf32>, tensor<32x4xf32>, tensor<32x4xf32>) {
  ^bb0(%product: f32, %m: index, %n: index, %f: index, %g: index):
    ext.yield %product : f32
  } -> tensor<1x4xf32>
  return %0 : tensor<1x4xf32>
}

// Four keys around each query: a halo is exchanged instead.
// CHECK-LABEL: func.func @window(
// CHECK-NOT: ring
func.func @window(%x: tensor<64x4xf32>) -> tensor<64x4xf32> {
  %0 = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%x, %x, %x : tensor<64x4xf32>, tensor<64x4xf32>, tensor<64x4xf32>) {
  ^bb0(%product: f32, %m: index, %n: index, %f: index, %g: index):
    %least = arith.constant 0xFF800000 : f32
    %c4 = arith.constant 4 : index
    %a = arith.divui %m, %c4 : index
    %b = arith.divui %n, %c4 : index
    %near = arith.cmpi eq, %a, %b : index
    %score = arith.select %near, %product, %least : f32
    ext.yield %score : f32
  } -> tensor<64x4xf32>
  return %0 : tensor<64x4xf32>
}
