// A collective in a loop waits once for pending ones over the same axes, not in each execution.
// RUN: tessera explain %s --compile-from scheduled --json - | FileCheck %s

// Each of the four gathers takes 40.6 us, and the first waits 79.2 us for the one before: 60.4 us are exposed on average.
// CHECK: "exposed_seconds": 6.04{{[0-9]*}}e-05
// CHECK: "modelled_seconds": 4.06{{[0-9]*}}e-05
dist.process_mesh @pod(shape = [8], dim_names = ["d"])

func.func @main(%x: tensor<1024x512xf32> {dist.name = "x"}, %w: tensor<8192x512xf32> {dist.name = "w"})
    -> (tensor<8192x512xf32> {dist.name = "sum"}, tensor<8192x512xf32> {dist.name = "all"}) attributes {dist.mesh = @pod, dist.view = "local"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %t = dist.start {
    %r = dist.all_reduce %w over @pod ["d"] reduction = sum : tensor<8192x512xf32>
    dist.yield %r : tensor<8192x512xf32>
  } : !dist.token<tensor<8192x512xf32>>
  %all = scf.for %i = %c0 to %c4 step %c1 iter_args(%state = %w) -> tensor<8192x512xf32> {
    %g = dist.all_gather %x over @pod ["d"] dim = 0 : tensor<1024x512xf32> -> tensor<8192x512xf32>
    scf.yield %g : tensor<8192x512xf32>
  }
  %sum = dist.wait %t : !dist.token<tensor<8192x512xf32>> -> tensor<8192x512xf32>
  return %sum, %all : tensor<8192x512xf32>, tensor<8192x512xf32>
}
