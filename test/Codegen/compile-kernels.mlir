// RUN: tessera-opt --tessera-compile-kernels %s -o /dev/null | FileCheck %s
// RUN: tessera-opt --tessera-compile-kernels="cpu=znver4" %s -o /dev/null | FileCheck %s
// RUN: tessera-opt --tessera-compile-kernels="cpu=x86-64" %s -o /dev/null | FileCheck %s
// RUN: tessera-opt --tessera-compile-kernels="vectorise=false" %s -o /dev/null | FileCheck %s --check-prefix=PLAIN
// RUN: tessera-opt --tessera-compile-kernels="print-loops=true cpu=haswell" %s -o /dev/null | FileCheck %s --check-prefix=LOOPS
// RUN: tessera-opt --tessera-compile-kernels="print-llvm=true cpu=haswell" %s -o /dev/null | FileCheck %s --check-prefix=LLVM

// The three passes over a row share one loop over tiles of rows; tiles are tasks.
// CHECK: softmax: vectorised, tasks 128, stack {{[0-9]+}}, heap 0
// PLAIN: softmax: fallback, tasks 1, stack {{[0-9]+}}, heap {{[1-9][0-9]*}} (not asked for)
// LOOPS-LABEL: softmax: vectorised
// LOOPS: scf.for {{.*}}
// LOOPS: arith.maxnumf {{.*}} : vector<8xf32>
// LOOPS: math.exp {{.*}} : vector<8xf32>
// LOOPS: arith.divf {{.*}} : vector<8xf32>
// LLVM-LABEL: softmax: vectorised
// LLVM-NOT: call{{.*}} @expf
// LLVM: call{{.*}} <8 x float> @llvm.fma.v8f32
func.func @softmax(%x: tensor<512x256xf32>, %o: tensor<512x256xf32>) -> tensor<512x256xf32> attributes {kernel.reads = 1 : i64} {
  %e = tensor.empty() : tensor<512x256xf32>
  %r = linalg.softmax dimension(1) ins(%x : tensor<512x256xf32>) outs(%e : tensor<512x256xf32>) -> tensor<512x256xf32>
  return %r : tensor<512x256xf32>
}

// A body with control flow keeps scalar loops, with a remark.
// CHECK: branch: vectorised, tasks 1, {{.*}} (scalar loops: no vector form of 'scf.if')
func.func @branch(%x: tensor<40xf32>, %o: tensor<40xf32>) -> tensor<40xf32> attributes {kernel.reads = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    ins(%x : tensor<40xf32>) outs(%o : tensor<40xf32>) {
  ^bb0(%a: f32, %b: f32):
    %p = arith.cmpf ogt, %a, %zero : f32
    %s = scf.if %p -> f32 {
      %t = math.log %a : f32
      scf.yield %t : f32
    } else {
      scf.yield %zero : f32
    }
    linalg.yield %s : f32
  } -> tensor<40xf32>
  return %r : tensor<40xf32>
}

// A matmul keeps its accumulators in registers: two vectors by six rows.
// LOOPS-LABEL: matmul: vectorised
// LOOPS: scf.for {{.*}} iter_args({{([^,]*, ){11}[^,]*}}) -> (vector<8xf32>
func.func @matmul(%x: tensor<48x64xf32>, %y: tensor<64x32xf32>, %o: tensor<48x32xf32>) -> tensor<48x32xf32> attributes {kernel.reads = 2 : i64} {
  %r = linalg.matmul ins(%x, %y : tensor<48x64xf32>, tensor<64x32xf32>) outs(%o : tensor<48x32xf32>) -> tensor<48x32xf32>
  return %r : tensor<48x32xf32>
}
