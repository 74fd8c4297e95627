// RUN: tessera-opt %s --interpret -o /dev/null --split-input-file --verify-diagnostics

func.func @nothing(%a: tensor<0xf32>, %i: index) -> f32 {
  // expected-error @+1 {{'tensor.extract' names an element of 'tensor<0xf32>', which has none}}
  %0 = tensor.extract %a[%i] : tensor<0xf32>
  return %0 : f32
}

// -----

func.func @unknown(%a: tensor<4xf32>) -> tensor<4xf32> {
  %c4 = arith.constant 4 : index
  // expected-error @+1 {{'scf.forall' is not known to the interpreter}}
  %0 = scf.forall (%i) in (%c4) shared_outs(%o = %a) -> tensor<4xf32> {
    scf.forall.in_parallel {
    }
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @check() {
  %0 = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %1 = arith.constant dense<[1.0, 2.1]> : tensor<2xf32>
  // expected-error @+1 {{'check.expect_close' fails: element [1] is 2, expected 2.1; error 0.0476 > 0.0001}}
  check.expect_close %0, %1 : tensor<2xf32>
  return
}

// -----

func.func @bits() {
  %0 = arith.constant dense<[[1.0], [0x7FC00000]]> : tensor<2x1xf32>
  %1 = arith.constant dense<[[1.0000001], [0x7FC00001]]> : tensor<2x1xf32>
  // expected-error @+1 {{'check.expect_eq' fails: element [0, 0] is 1, expected 1.0000001}}
  check.expect_eq %0, %1 : tensor<2x1xf32>
  return
}

// -----

func.func @local(%a: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{'dist.all_reduce' belongs to the local view; this is the global view on one device}}
  %0 = dist.all_reduce %a over @m ["x"] reduction = sum : tensor<2xf32>
  return %0 : tensor<2xf32>
}
dist.process_mesh @m(shape = [2], dim_names = ["x"])

// -----

func.func @recursion(%a: i32) -> i32 {
  // expected-error @+1 {{'func.call' calls 'recursion' recursively}}
  %0 = func.call @recursion(%a) : (i32) -> i32
  return %0 : i32
}
