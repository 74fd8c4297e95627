// The derivative of a look-up: each row of the table adds up the terms with its index. One kernel
// visits the terms once, in order; on a GPU threads share the columns. 16-bit floats are added in
// f32, and indices out of bounds add nothing.
// RUN: tessera compile %s --target=stub --kernels -o %t.tsra | FileCheck %s --check-prefix=GPU
// RUN: tessera run %s --no-cache --check=interpreter | FileCheck %s
// RUN: tessera run %s --no-cache --backend stub --check=interpreter | FileCheck %s
// RUN: sed 's/f32/bf16/g' %s > %t.mlir
// RUN: tessera run %t.mlir --no-cache --check=interpreter | FileCheck %s

// GPU: kernel {{.*}}scatter
// CHECK: check  result0  ok
dist.process_mesh @line(shape = [2], dim_names = ["d"])
func.func @main(%numbers: tensor<40xi32>, %g: tensor<40x6xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>}) -> tensor<30x6xf32> {
  %empty = tensor.empty() : tensor<40xi32>
  %indices = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%numbers : tensor<40xi32>) outs(%empty : tensor<40xi32>) {
  ^bb0(%x: i32, %_: i32):
    %c31 = arith.constant 31 : i32
    %index = arith.andi %x, %c31 : i32
    linalg.yield %index : i32
  } -> tensor<40xi32>
  %zero = arith.constant dense<0.0> : tensor<30x6xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, v, j) -> (i)>, affine_map<(i, v, j) -> (i, j)>, affine_map<(i, v, j) -> (v, j)>],
                       iterator_types = ["reduction", "parallel", "parallel"]}
      ins(%indices, %g : tensor<40xi32>, tensor<40x6xf32>) outs(%zero : tensor<30x6xf32>) {
  ^bb0(%index: i32, %x: f32, %sum: f32):
    %c0 = arith.constant 0.0 : f32
    %v = linalg.index 1 : index
    %number = arith.index_cast %v : index to i32
    %here = arith.cmpi eq, %index, %number : i32
    %term = arith.select %here, %x, %c0 : f32
    %next = arith.addf %sum, %term : f32
    linalg.yield %next : f32
  } -> tensor<30x6xf32>
  return %y : tensor<30x6xf32>
}
