// RUN: tessera-opt %s --split-input-file --verify-diagnostics

// (C7) A start and its wait are paired in one block.

dist.process_mesh @pod(shape = [2], dim_names = ["x"])
func.func @without_a_start(%t: !dist.token<tensor<4xf32>>) -> tensor<4xf32> {
  // expected-error@+1 {{waits for a token that no dist.start of its block made; add the start}}
  %0 = dist.wait %t : !dist.token<tensor<4xf32>> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

dist.process_mesh @pod(shape = [2], dim_names = ["x"])
func.func @in_another_block(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{has no dist.wait in its block}}
  %t = dist.start {
    %0 = dist.all_reduce %x over @pod ["x"] reduction = sum : tensor<4xf32>
    dist.yield %0 : tensor<4xf32>
  } : !dist.token<tensor<4xf32>>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> (tensor<4xf32>) {
    %0 = dist.wait %t : !dist.token<tensor<4xf32>> -> tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

dist.process_mesh @pod(shape = [2], dim_names = ["x"])
func.func @twice(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // expected-error@+1 {{is waited for 2 times; a token is waited for exactly once}}
  %t = dist.start {
    %0 = dist.all_reduce %x over @pod ["x"] reduction = sum : tensor<4xf32>
    dist.yield %0 : tensor<4xf32>
  } : !dist.token<tensor<4xf32>>
  %0 = dist.wait %t : !dist.token<tensor<4xf32>> -> tensor<4xf32>
  %1 = dist.wait %t : !dist.token<tensor<4xf32>> -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

dist.process_mesh @pod(shape = [2], dim_names = ["x"])
func.func @more_than_a_collective(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{holds one collective and its dist.yield, nothing else}}
  %t = dist.start {
    %y = math.exp %x : tensor<4xf32>
    %0 = dist.all_reduce %y over @pod ["x"] reduction = sum : tensor<4xf32>
    dist.yield %0 : tensor<4xf32>
  } : !dist.token<tensor<4xf32>>
  %0 = dist.wait %t : !dist.token<tensor<4xf32>> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

dist.process_mesh @pod(shape = [2], dim_names = ["x"])
func.func @another_result(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{must yield the results of its collective, all and in order}}
  %t = dist.start {
    %0 = dist.all_reduce %x over @pod ["x"] reduction = sum : tensor<4xf32>
    dist.yield %x : tensor<4xf32>
  } : !dist.token<tensor<4xf32>>
  %0 = dist.wait %t : !dist.token<tensor<4xf32>> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

dist.process_mesh @pod(shape = [2], dim_names = ["x"])
func.func @other_types(%x: tensor<4xf32>) -> tensor<8xf32> {
  %t = dist.start {
    %0 = dist.all_reduce %x over @pod ["x"] reduction = sum : tensor<4xf32>
    dist.yield %0 : tensor<4xf32>
  } : !dist.token<tensor<4xf32>>
  // expected-error@+1 {{waits for '!dist.token<tensor<4xf32>>' but gives 'tensor<8xf32>'}}
  %0 = dist.wait %t : !dist.token<tensor<4xf32>> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
