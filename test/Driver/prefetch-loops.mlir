// A loop over layers gathers the weights of the next layer, and sums the products of the last one, during its own products.
// Results are bitwise equal to those without overlap, on threads and on the stub GPU in any order of its streams.
// RUN: tessera explain %s --topology %S/Inputs/own_cores.json | FileCheck %s --check-prefix=PLAIN
// RUN: tessera explain %s --overlap --topology %S/Inputs/own_cores.json | FileCheck %s
// RUN: tessera explain %s --overlap --memory-budget 0.0081 --topology %S/Inputs/own_cores.json | FileCheck %s --check-prefix=LITTLE
// RUN: tessera run %s --topology %S/Inputs/own_cores.json | grep checksum > %t.plain
// RUN: tessera run %s --overlap --topology %S/Inputs/own_cores.json | grep checksum > %t.threads
// RUN: diff %t.plain %t.threads
// RUN: tessera run %s --backend stub --topology %S/Inputs/own_cores.json | grep checksum > %t.one
// RUN: tessera run %s --overlap --backend stub --schedule-seed 7 --topology %S/Inputs/own_cores.json | grep checksum > %t.other
// RUN: diff %t.one %t.other

// PLAIN: all_gather {{.*}} x 9 trips
// PLAIN: reduce_scatter {{.*}} x 9 trips
// CHECK: reduce_scatter {{.*}} x 3 trips {{.*}}(overlapped: 0 µs of
// CHECK: all_gather {{.*}} x 3 trips {{.*}}(overlapped: 0 µs of
// CHECK: all_gather {{.*}} x 3 trips {{.*}}(overlapped: 0 µs of
// CHECK: total: 18 collectives
// LITTLE: all_gather {{.*}} x 9 trips
dist.process_mesh @line(shape = [4], dim_names = ["d"])

#transposed = affine_map<(i, j, k) -> (k, i)>
#left = affine_map<(i, j, k) -> (i, k)>
#right = affine_map<(i, j, k) -> (k, j)>
#result = affine_map<(i, j, k) -> (i, j)>

func.func @main(%x: tensor<16384x128xf32> {dist.name = "x", dist.sharding = #dist.sharding<@line, [shard(0)]>},
                %w: tensor<9x128x128xf32> {dist.name = "w", dist.sharding = #dist.sharding<@line, [shard(1)]>})
    -> (tensor<16384x128xf32> {dist.name = "y"}, tensor<9x128x128xf32> {dist.name = "g", dist.sharding = #dist.sharding<@line, [shard(1)]>}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %stack = arith.constant dense<0.0> : tensor<9x128x128xf32>
  %of_y = arith.constant dense<0.0> : tensor<16384x128xf32>
  %of_g = arith.constant dense<0.0> : tensor<128x128xf32>
  %y, %g = scf.for %i = %c0 to %c9 step %c1 iter_args(%h = %x, %all = %stack) -> (tensor<16384x128xf32>, tensor<9x128x128xf32>) {
    %layer = tensor.extract_slice %w[%i, 0, 0] [1, 128, 128] [1, 1, 1] : tensor<9x128x128xf32> to tensor<128x128xf32>
    %p = linalg.contract indexing_maps = [#left, #right, #result] ins(%h, %layer : tensor<16384x128xf32>, tensor<128x128xf32>) outs(%of_y : tensor<16384x128xf32>) -> tensor<16384x128xf32>
    %next = math.tanh %p : tensor<16384x128xf32>
    %s = linalg.contract indexing_maps = [#transposed, #right, #result] ins(%h, %next : tensor<16384x128xf32>, tensor<16384x128xf32>) outs(%of_g : tensor<128x128xf32>) -> tensor<128x128xf32>
    %used = math.tanh %s : tensor<128x128xf32> // else the sums are reduced once, behind the loop
    %more = tensor.insert_slice %used into %all[%i, 0, 0] [1, 128, 128] [1, 1, 1] : tensor<128x128xf32> into tensor<9x128x128xf32>
    scf.yield %next, %more : tensor<16384x128xf32>, tensor<9x128x128xf32>
  }
  return %y, %g : tensor<16384x128xf32>, tensor<9x128x128xf32>
}
