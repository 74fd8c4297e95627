// RUN: tessera-opt --tessera-compile-kernels --split-input-file --verify-diagnostics %s

// expected-error@+1 {{kernel needs the attribute 'kernel.reads', the number of arguments it only reads}}
func.func @reads(%x: tensor<4xf32>) {
  return
}

// -----

// expected-error@+1 {{kernel argument 0 is not a static tensor: 'tensor<?xf32>'}}
func.func @dynamic(%x: tensor<?xf32>) attributes {kernel.reads = 1 : i64} {
  return
}

// -----

// expected-error@+1 {{kernel has 1 destinations for 0 results}}
func.func @results(%x: tensor<4xf32>) attributes {kernel.reads = 0 : i64} {
  return
}

// -----

// expected-error@+1 {{destination 1 has type 'tensor<4xf32>' but its result has type 'tensor<5xf32>'}}
func.func @types(%x: tensor<5xf32>, %o: tensor<4xf32>) -> tensor<5xf32> attributes {kernel.reads = 1 : i64} {
  return %x : tensor<5xf32>
}

// -----

// expected-error@+1 {{kernel name 'a b' is not a symbol name}}
func.func @"a b"(%x: tensor<5xf32>) attributes {kernel.reads = 1 : i64} {
  return
}

// -----

func.func @call(%x: tensor<5xf32>) attributes {kernel.reads = 1 : i64} {
  // expected-error@+1 {{'func.call' is not allowed in a kernel}}
  func.call @call(%x) : (tensor<5xf32>) -> ()
  return
}
