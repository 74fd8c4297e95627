// RUN: tessera-opt %s --tessera-pipeline --codegen | FileCheck %s
// RUN: tessera explain %s | FileCheck %s --check-prefix=MEMORY
// RUN: tessera run %s --check | FileCheck %s --check-prefix=VALUE

// A row of a carried buffer is read, and then zeros are written to it, in the kernel that computes the row's number unless
// the update waits for the reader. Then it is in place, else each iteration would copy the buffer.
dist.process_mesh @one(shape = [1], dim_names = ["d"])

// VALUE: check {{.*}} ok
// The buffer, once, and some rows.
// MEMORY: peak memory {{6[5-9][0-9][0-9][0-9]}} bytes

// CHECK-LABEL: rt.program @main
// CHECK: rt.loop
// CHECK-NOT: rt.copy
// CHECK: rt.launch @{{.*}}tanh
// CHECK-NOT: rt.copy
// CHECK: rt.launch @{{.*}}select
// CHECK-NOT: rt.copy
// CHECK: }

#none = affine_map<() -> ()>
#number = affine_map<(d0, d1) -> ()>
#row = affine_map<(d0, d1) -> (d1)>
#all = affine_map<(d0, d1) -> (d0, d1)>
func.func @main(%h: tensor<256xf32>) -> (tensor<256xf32>, tensor<64x256xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c40 = arith.constant 40 : index
  %zeros = arith.constant dense<0.0> : tensor<256xf32>
  %start = arith.constant dense<1.0> : tensor<64x256xf32>
  %r:2 = scf.for %i = %c0 to %c40 step %c1 iter_args(%s = %h, %c = %start) -> (tensor<256xf32>, tensor<64x256xf32>) {
    %e = tensor.empty() : tensor<i32>
    %number = linalg.generic {indexing_maps = [#none], iterator_types = []} outs(%e : tensor<i32>) {
    ^bb0(%o: i32):
      %c3 = arith.constant 3 : i32
      %c64_i32 = arith.constant 64 : i32
      %k = arith.index_cast %i : index to i32
      %k3 = arith.addi %k, %c3 : i32
      %m = arith.remui %k3, %c64_i32 : i32
      linalg.yield %m : i32
    } -> tensor<i32>
    %n = tensor.extract %number[] : tensor<i32>
    %at = arith.index_cast %n : i32 to index
    %part = tensor.extract_slice %c[%at, 0] [1, 256] [1, 1] : tensor<64x256xf32> to tensor<1x256xf32>
    %old = tensor.collapse_shape %part [[0, 1]] : tensor<1x256xf32> into tensor<256xf32>
    %sum = arith.addf %s, %old : tensor<256xf32>
    %next = math.tanh %sum : tensor<256xf32>
    %new = linalg.generic {indexing_maps = [#row, #number, #all], iterator_types = ["parallel", "parallel"]}
        ins(%zeros, %number : tensor<256xf32>, tensor<i32>) outs(%c : tensor<64x256xf32>) {
    ^bb0(%z: f32, %m: i32, %o: f32):
      %loop = linalg.index 0 : index
      %l = arith.index_cast %loop : index to i32
      %is = arith.cmpi eq, %m, %l : i32
      %t = arith.select %is, %z, %o : f32
      linalg.yield %t : f32
    } -> tensor<64x256xf32>
    scf.yield %next, %new : tensor<256xf32>, tensor<64x256xf32>
  }
  return %r#0, %r#1 : tensor<256xf32>, tensor<64x256xf32>
}
