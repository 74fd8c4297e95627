// RUN: tessera-opt %s --tessera-pipeline --codegen | FileCheck %s
// RUN: tessera run %s --check=interpreter --no-cache

// What a loop starts from is filled in its place: the artifact holds no copy of the zeros.
// CHECK: rt.part
// CHECK-NOT: rt.constant {{.*}}64x256
// CHECK: rt.launch @{{.*}}fill
// CHECK: rt.loop
func.func @main(%x: tensor<64x256xf32>) -> tensor<64x256xf32> {
  %zero = arith.constant dense<0.0> : tensor<64x256xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %r = scf.for %k = %c0 to %c64 step %c1 iter_args(%all = %zero) -> tensor<64x256xf32> {
    %row = tensor.extract_slice %x[%k, 0] [1, 256] [1, 1] : tensor<64x256xf32> to tensor<1x256xf32>
    %twice = arith.addf %row, %row : tensor<1x256xf32>
    %next = tensor.insert_slice %twice into %all[%k, 0] [1, 256] [1, 1]
        : tensor<1x256xf32> into tensor<64x256xf32>
    scf.yield %next : tensor<64x256xf32>
  }
  return %r : tensor<64x256xf32>
}
