// RUN: tessera-opt %s --split-input-file --verify-diagnostics --dist-autodiff=seed=argument

func.func @main(%x: tensor<3xf32>, %n: tensor<index>) -> tensor<3xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = tensor.extract %n[] : tensor<index>
  // expected-error@+1 {{'scf.for' has no derivative: its trip count is unknown; its bounds and step must be constants}}
  %y = scf.for %i = %c0 to %trips step %c1 iter_args(%h = %x) -> (tensor<3xf32>) {
    %s = math.sin %h : tensor<3xf32>
    scf.yield %s : tensor<3xf32>
  }
  return %y : tensor<3xf32>
}

// -----

func.func @main(%x: tensor<3xf32>, %more: i1) -> tensor<3xf32> {
  // expected-error@+1 {{'scf.while' has no derivative: its trip count is unknown; write scf.for}}
  %y = scf.while (%h = %x) : (tensor<3xf32>) -> tensor<3xf32> {
    scf.condition(%more) %h : tensor<3xf32>
  } do {
  ^bb0(%h: tensor<3xf32>):
    %s = math.sin %h : tensor<3xf32>
    scf.yield %s : tensor<3xf32>
  }
  return %y : tensor<3xf32>
}

// -----

func.func @main(%x: tensor<8xf32>) -> tensor<4xf32> {
  %empty = tensor.empty() : tensor<4xf32>
  // expected-error@+1 {{an operand is read at 'd0 floordiv 2' in dimension 0, which has no derivative; an index must be a loop, or 'stride * i + dilation * k + c' with two loops that no other dimension has}}
  %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0 floordiv 2)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<8xf32>) -> tensor<f32> {
  %zero = arith.constant dense<0.0> : tensor<f32>
  // expected-error@+1 {{'linalg.generic' has no derivative: its body combines result 0 over loops other than by a sum, product, maximum, minimum or assignment}}
  %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]}
      ins(%x : tensor<8xf32>) outs(%zero : tensor<f32>) {
  ^bb0(%a: f32, %acc: f32):
    %t = math.tanh %acc : f32
    %s = arith.addf %a, %t : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  return %y : tensor<f32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'tensor.generate' has no derivative: write it as linalg.generic, or stop the gradient with dist.stop_gradient}}
  %y = tensor.generate {
  ^bb0(%i: index):
    %e = tensor.extract %x[%i] : tensor<4xf32>
    tensor.yield %e : f32
  } : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// Ops without a gradient need no derivative.
func.func @main(%x: tensor<4xf32>, %n: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>) {
  %y = tensor.generate {
  ^bb0(%i: index):
    %e = tensor.extract %n[%i] : tensor<4xi32>
    tensor.yield %e : i32
  } : tensor<4xi32>
  return %x, %y : tensor<4xf32>, tensor<4xi32>
}
