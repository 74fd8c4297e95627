// A temporary of one iteration must not be in the workspace, which all threads of a launch share: it is on the stack of its
// thread. (Bug: the four bytes of a branch's result were written and read by all threads; only a GPU showed it.)
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_80 print-loops" -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s --check-prefix=EQUAL

#each = affine_map<(i) -> (i)>

// CHECK-LABEL: quotients: launches 1, workspace 0, bytes 1600 of 1600
// CHECK-NEXT: loops: grid 2, block 128
// CHECK: memref.alloca() : memref<i32>
// EQUAL: quotients: loops equal
func.func private @quotients(%x: tensor<200xi32>, %o: tensor<200xi32>) -> tensor<200xi32> attributes {kernel.reads = 1 : i64} {
  %0 = linalg.generic {indexing_maps = [#each, #each], iterator_types = ["parallel"]}
      ins(%x : tensor<200xi32>) outs(%o : tensor<200xi32>) {
  ^bb0(%in: i32, %out: i32):
    %none = arith.constant dense<0> : tensor<i32>
    %twelve = arith.constant 12 : i32
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %is = arith.cmpi ne, %n, %twelve : i32
    %r = scf.if %is -> (tensor<i32>) {
      %q = arith.divsi %n, %in : i32
      %t = tensor.from_elements %q : tensor<i32>
      scf.yield %t : tensor<i32>
    } else {
      scf.yield %none : tensor<i32>
    }
    %e = tensor.extract %r[] : tensor<i32>
    linalg.yield %e : i32
  } -> tensor<200xi32>
  return %0 : tensor<200xi32>
}

// 200 bytes: on the stack.
// CHECK-LABEL: small: launches 1, workspace 0
// CHECK-NEXT: loops: grid 1, block 96
// EQUAL: small: loops equal
func.func private @small(%x: tensor<70xf32>, %o: tensor<70xf32>) -> tensor<70xf32> attributes {kernel.reads = 1 : i64} {
  %0 = linalg.generic {indexing_maps = [#each, #each], iterator_types = ["parallel"]}
      ins(%x : tensor<70xf32>) outs(%o : tensor<70xf32>) {
  ^bb0(%in: f32, %out: f32):
    %t = arith.constant dense<1.5> : tensor<50xf32>
    %c7 = arith.constant 7 : index
    %i = linalg.index 0 : index
    %at = arith.remui %i, %c7 : index
    %u = tensor.insert %in into %t[%at] : tensor<50xf32>
    %e = tensor.extract %u[%c7] : tensor<50xf32>
    %f = tensor.extract %u[%at] : tensor<50xf32>
    %s = arith.addf %e, %f : f32
    linalg.yield %s : f32
  } -> tensor<70xf32>
  return %0 : tensor<70xf32>
}

// 1,200 bytes: the iterations run one after the other.
// CHECK-LABEL: large: launches 1, workspace 1280
// CHECK-SAME: an iteration has temporaries of more than 1024 bytes
// CHECK-NEXT: serial: grid 1, block 1
// EQUAL: large: serial equal
func.func private @large(%x: tensor<70xf32>, %o: tensor<70xf32>) -> tensor<70xf32> attributes {kernel.reads = 1 : i64} {
  %0 = linalg.generic {indexing_maps = [#each, #each], iterator_types = ["parallel"]}
      ins(%x : tensor<70xf32>) outs(%o : tensor<70xf32>) {
  ^bb0(%in: f32, %out: f32):
    %t = arith.constant dense<1.5> : tensor<300xf32>
    %c7 = arith.constant 7 : index
    %i = linalg.index 0 : index
    %at = arith.remui %i, %c7 : index
    %u = tensor.insert %in into %t[%at] : tensor<300xf32>
    %e = tensor.extract %u[%c7] : tensor<300xf32>
    %f = tensor.extract %u[%at] : tensor<300xf32>
    %s = arith.addf %e, %f : f32
    linalg.yield %s : f32
  } -> tensor<70xf32>
  return %0 : tensor<70xf32>
}
