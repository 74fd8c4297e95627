// RUN: tessera run %s --check | FileCheck %s

// A division in a branch of a body may read the padding of an uneven part.
// CHECK: check result0 ok
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @main(%a: tensor<9xi32> {dist.range=[1,9], dist.sharding = #dist.sharding<@m, [shard(0)]>}, %b: tensor<9xi32> {dist.range=[1,9], dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> tensor<9xi32> {
  %e = tensor.empty() : tensor<9xi32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i)->(i)>, affine_map<(i)->(i)>, affine_map<(i)->(i)>], iterator_types = ["parallel"]} ins(%a, %b : tensor<9xi32>, tensor<9xi32>) outs(%e : tensor<9xi32>) {
  ^bb0(%x: i32, %y: i32, %o: i32):
    %c = arith.cmpi sge, %x, %y : i32
    %r = scf.if %c -> i32 {
      %d = arith.divsi %x, %y : i32
      scf.yield %d : i32
    } else {
      scf.yield %y : i32
    }
    linalg.yield %r : i32
  } -> tensor<9xi32>
  return %0 : tensor<9xi32> }
