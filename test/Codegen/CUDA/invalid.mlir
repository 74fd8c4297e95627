// RUN: not tessera-opt %s --tessera-compile-gpu-kernels="arch=sm_70" -o /dev/null 2>&1 | FileCheck %s --check-prefix=OLD
// RUN: not tessera-opt %s --tessera-compile-gpu-kernels="arch=sm_80 ptxas=/nonexistent/ptxas" -o /dev/null 2>&1 | FileCheck %s --check-prefix=ASM
// RUN: not tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_999" -o /dev/null 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_80a" -o /dev/null 2>&1 | FileCheck %s --check-prefix=SUFFIX
// RUN: not tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_80,compute_90,compute_80" -o /dev/null 2>&1 | FileCheck %s --check-prefix=TWICE
// OLD: error: unknown architecture 'sm_70'; expected sm_NN or compute_NN with NN at least 80, or stub
// ASM: error: the assembler '/nonexistent/ptxas' cannot be executed
// UNKNOWN: error: unknown architecture 'compute_999'; LLVM has code for
// SUFFIX: error: unknown architecture 'compute_80a'; LLVM has code for
// TWICE: error: duplicate architecture 'compute_80'; give each architecture once
// TWICE-NOT: error
func.func private @copy(%x: tensor<8xf32>, %o: tensor<8xf32>) -> tensor<8xf32> attributes {kernel.reads = 1 : i64} {
  %0 = linalg.copy ins(%x : tensor<8xf32>) outs(%o : tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
