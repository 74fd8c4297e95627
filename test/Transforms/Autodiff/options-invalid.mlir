// RUN: not tessera-opt %s --dist-autodiff 2>&1 | FileCheck %s --check-prefix=FUNCTION
// RUN: not tessera-opt %s --dist-autodiff="function=f wrt=q" 2>&1 | FileCheck %s --check-prefix=WRT
// RUN: not tessera-opt %s --dist-autodiff="function=f wrt=n" 2>&1 | FileCheck %s --check-prefix=INTEGER
// RUN: not tessera-opt %s --dist-autodiff="function=f wrt=x,0" 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not tessera-opt %s --dist-autodiff="function=f of=7" 2>&1 | FileCheck %s --check-prefix=OF
// RUN: not tessera-opt %s --dist-autodiff="function=f of=1" 2>&1 | FileCheck %s --check-prefix=OFINTEGER
// RUN: not tessera-opt %s --dist-autodiff="function=f" 2>&1 | FileCheck %s --check-prefix=SCALAR
// RUN: not tessera-opt %s --dist-autodiff="function=f seed=two" 2>&1 | FileCheck %s --check-prefix=SEED
// RUN: not tessera-opt %s --dist-autodiff="function=f name=taken seed=argument" 2>&1 | FileCheck %s --check-prefix=TAKEN
// RUN: not tessera-opt %s --dist-autodiff="function=f name=declared seed=argument" 2>&1 | FileCheck %s --check-prefix=DECLARED
// RUN: not tessera-opt %s --dist-autodiff="function=declared" 2>&1 | FileCheck %s --check-prefix=BODY
// RUN: not tessera-opt %s --dist-autodiff="function=integers" 2>&1 | FileCheck %s --check-prefix=NOTHING

// FUNCTION: error: no function 'main' to differentiate
// WRT: [[@LINE+9]]:1: error: wrt 'q' is not an argument of 'f'; give a dist.name or an index
// INTEGER: [[@LINE+8]]:{{.*}}: error: argument 'n' of 'f' has type 'tensor<4xi32>'; only floating-point arguments have gradients
// TWICE: [[@LINE+7]]:1: error: wrt '0' is given twice
// OF: [[@LINE+6]]:1: error: of '7' is not a result of 'f'; give a dist.name or an index
// OFINTEGER: [[@LINE+5]]:1: error: result 'result1' has type 'tensor<4xi32>'; only floating-point results are differentiated
// SCALAR: [[@LINE+4]]:1: error: result 'result0' has type 'tensor<4xf32>' and no cotangent; give it one with seed=argument, or differentiate a scalar
// SEED: error: seed 'two' is neither one nor argument
// TAKEN: [[@LINE+6]]:1: error: 'taken' already exists; give the derivative another name
// DECLARED: [[@LINE+6]]:1: error: 'declared' is declared as '(tensor<4xf32>) -> tensor<4xf32>'; the derivative of 'f' has type
func.func @f(%x: tensor<4xf32> {dist.name = "x"}, %n: tensor<4xi32> {dist.name = "n"}) -> (tensor<4xf32>, tensor<4xi32>) {
  return %x, %n : tensor<4xf32>, tensor<4xi32>
}

func.func @taken() { return }
func.func private @declared(tensor<4xf32>) -> tensor<4xf32>
// BODY: [[@LINE-1]]:1: error: 'declared' cannot be differentiated; expected a function of the global view with one block
// NOTHING: [[@LINE+1]]:1: error: 'integers' has no floating-point argument to differentiate with respect to
func.func @integers(%n: tensor<i32>) -> tensor<i32> {
  return %n : tensor<i32>
}
