// Without overlap and a budget, keys and values are gathered; with them the program is compiled
// both ways, and the report has the reason for a ring. The bytes are equal. Keys and values are sent together, within
// the budget of several steps of the ring.
// RUN: tessera explain %s | FileCheck %s --check-prefix=GATHER
// RUN: tessera explain %s --overlap | FileCheck %s --check-prefix=OVERLAP
// RUN: tessera explain %s --memory-budget 60M | FileCheck %s --check-prefix=BUDGET
// RUN: tessera explain %s --overlap --attention-sequence gather | FileCheck %s --check-prefix=GATHER

// GATHER: all_gather
// GATHER: 44040192 bytes on the wire
// GATHER: parallelism: none
// OVERLAP-COUNT-7: exchange
// OVERLAP: 44040192 bytes on the wire
// OVERLAP: parallelism: ring attention ({{.*}} us modelled, {{.*}} us with keys and values gathered; {{.*}} instead of {{.*}} of memory)
// BUDGET-COUNT-3: exchange
// BUDGET: 44040192 bytes on the wire
// BUDGET: parallelism: ring attention (keys and values gathered do not fit into the memory budget)

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
    ext.yield %product : f32
  } -> tensor<3x32768x64xf32>
  return %0 : tensor<3x32768x64xf32>
}
