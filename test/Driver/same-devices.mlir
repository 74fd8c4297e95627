// RUN: tessera run %s --check --json - | FileCheck %s
// RUN: tessera explain %s | FileCheck %s --check-prefix=EXPLAIN

// Two arrangements of the same devices: coordinates name their mesh, and an exchange names
// both.
// EXPLAIN: exchange @a -> b
// CHECK: "equal": true
dist.process_mesh @a(shape = [4], dim_names = ["x"])
dist.process_mesh @b(shape = [2, 2], dim_names = ["y", "z"], process_ids = [3, 1, 0, 2])

func.func @main(%p: tensor<8xindex> {dist.sharding = #dist.sharding<@a, [shard(0)]>, dist.range = [0, 9]})
    -> tensor<8xindex> {
  %q = dist.reshard %p to #dist.sharding<@b, [shard(0), shard(0)]> : tensor<8xindex>
  %e = tensor.empty() : tensor<8xindex>
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%q : tensor<8xindex>) outs(%e : tensor<8xindex>) {
  ^bb0(%in: index, %out: index):
    %i = linalg.index 0 : index
    %s = arith.addi %in, %i : index
    linalg.yield %s : index
  } -> tensor<8xindex>
  return %0 : tensor<8xindex>
}
