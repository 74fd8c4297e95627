// RUN: tessera-opt %s --tessera-pipeline --interpret -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --dist-normalize --dist-propagate --dist-insert-reshards | FileCheck %s --check-prefix=IR

// The table is read in a branch of the body: the reshard that gathers it is placed before the op.
dist.process_mesh @m(shape = [3], dim_names = ["x"])

// IR-LABEL: func.func @main
// IR: %[[WHOLE:.*]] = dist.reshard %{{.*}} to #dist.sharding<@m, [replicate]>
// IR: linalg.generic
// IR: scf.if
// IR: tensor.extract %[[WHOLE]]
// CHECK: result0 : tensor<5xi32> = [9, 1, 2, 3, 9]
func.func @main() -> tensor<5xi32> {
  %line = arith.constant dense<[1, 2, 3]> : tensor<3xi32>
  %table = dist.shard_tensor %line, #dist.sharding<@m, [shard(0)]> : tensor<3xi32>
  %nines = arith.constant dense<9> : tensor<5xi32>
  %x = dist.shard_tensor %nines, #dist.sharding<@m, [shard(0)]> : tensor<5xi32>
  %e = tensor.empty() : tensor<5xi32>
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%x : tensor<5xi32>) outs(%e : tensor<5xi32>) {
  ^bb0(%in: i32, %out: i32):
    %one = arith.constant 1 : index
    %three = arith.constant 3 : index
    %i = linalg.index 0 : index
    %place = arith.subi %i, %one : index
    %inside = arith.cmpi ult, %place, %three : index
    %r = scf.if %inside -> i32 {
      %v = tensor.extract %table[%place] : tensor<3xi32>
      scf.yield %v : i32
    } else {
      scf.yield %in : i32
    }
    linalg.yield %r : i32
  } -> tensor<5xi32>
  return %0 : tensor<5xi32>
}
