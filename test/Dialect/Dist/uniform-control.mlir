// RUN: tessera-opt %s --verify-diagnostics --split-input-file

// (C5) A loop carry that depends on the coordinate.
dist.process_mesh @m(shape = [2, 2], dim_names = ["x", "y"])
func.func @carried(%x: tensor<4xf32>) attributes {dist.view = "local", dist.mesh = @m} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %i = dist.axis_index over @m ["y"] : index
  %n = scf.for %k = %c0 to %c4 step %c1 iter_args(%s = %c0) -> index {
    %t = arith.addi %s, %i : index
    scf.yield %t : index
  }
  scf.for %k = %c0 to %n step %c1 {
    // expected-error@+1 {{is nested in 'scf.for', whose control flow may differ between devices along axis 'y' of mesh 'm': some would wait forever}}
    %0 = dist.all_reduce %x over @m ["x"] reduction = sum : tensor<4xf32>
  }
  return
}

// -----
// (C5) The part of a cut tensor differs between devices.
dist.process_mesh @m(shape = [2], dim_names = ["x"])
func.func @shard(%x: tensor<4xf32>, %c: tensor<2xi1> {dist.sharding = #dist.sharding<@m, [shard(0)]>, dist.global_type = tensor<4xi1>})
    attributes {dist.view = "local", dist.mesh = @m} {
  %c0 = arith.constant 0 : index
  %v = tensor.extract %c[%c0] : tensor<2xi1>
  scf.if %v {
    // expected-error@+1 {{is nested in 'scf.if', whose control flow may differ between devices along axis 'x' of mesh 'm'}}
    %0 = dist.all_reduce %x over @m ["x"] reduction = sum : tensor<4xf32>
  }
  return
}

// -----
// (C5) The taken branch depends on the coordinate.
dist.process_mesh @m(shape = [2], dim_names = ["x"])
func.func @branch(%x: tensor<4xf32>) attributes {dist.view = "local", dist.mesh = @m} {
  %true = arith.constant true
  %false = arith.constant false
  %c0 = arith.constant 0 : index
  %i = dist.axis_index over @m ["x"] : index
  %first = arith.cmpi eq, %i, %c0 : index
  %c = scf.if %first -> i1 {
    scf.yield %true : i1
  } else {
    scf.yield %false : i1
  }
  scf.if %c {
    // expected-error@+1 {{is nested in 'scf.if', whose control flow may differ between devices along axis 'x'}}
    %0 = dist.all_reduce %x over @m ["x"] reduction = sum : tensor<4xf32>
  }
  return
}

// -----
// A value reduced over all axes along which it differs is uniform.
dist.process_mesh @m(shape = [2, 2], dim_names = ["x", "y"])
func.func @reduced(%x: tensor<4xf32>) attributes {dist.view = "local", dist.mesh = @m} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = dist.axis_index over @m ["x"] : index
  %t = tensor.from_elements %i : tensor<1xindex>
  %r = dist.all_reduce %t over @m ["x"] reduction = sum : tensor<1xindex>
  %n = tensor.extract %r[%c0] : tensor<1xindex>
  scf.for %k = %c0 to %n step %c1 {
    %0 = dist.all_reduce %x over @m ["y"] reduction = sum : tensor<4xf32>
  }
  return
}

// -----
// A slice does not wait for other devices.
dist.process_mesh @m(shape = [2], dim_names = ["x"])
func.func @slice(%x: tensor<4xf32>) attributes {dist.view = "local", dist.mesh = @m} {
  %c0 = arith.constant 0 : index
  %i = dist.axis_index over @m ["x"] : index
  %first = arith.cmpi eq, %i, %c0 : index
  scf.if %first {
    %0 = dist.slice %x over @m ["x"] dim = 0 : tensor<4xf32> -> tensor<2xf32>
  }
  return
}
