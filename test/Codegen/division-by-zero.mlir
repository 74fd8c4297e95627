// Divisors 0 and -1 and the least integer as dividend have a result (docs/numerics.md), and raise
// no signal. In bodies, on scalars between steps, and in a quotient as a loop bound.
// RUN: tessera-opt %s --interpret -o /dev/null
// RUN: sed '/check[.]/d' %s > %t.mlir
// RUN: tessera run %t.mlir --check=interpreter | FileCheck %s
// RUN: tessera run %t.mlir --check=interpreter --backend stub | FileCheck %s

// CHECK: check  result0  ok
// CHECK: check  result1  ok
// CHECK: check  result2  ok
// CHECK: check  result3  ok
dist.process_mesh @m(shape = [2], dim_names = ["d"])
func.func @main(%a: tensor<33xi8> {dist.range = [-128, -125], dist.sharding = #dist.sharding<@m, [shard(0)]>},
                %b: tensor<33xi8> {dist.range = [-2, 3]}, %n: tensor<index> {dist.range = [0, 1]})
    -> (tensor<33xi8>, tensor<33xi8>, tensor<i64>, tensor<4xi32>) {
  %q = arith.divsi %a, %b : tensor<33xi8>
  %r = arith.remsi %a, %b : tensor<33xi8>

  %zero = tensor.extract %n[] : tensor<index>
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %bound = arith.ceildivsi %c7, %zero : index
  %up = arith.addi %bound, %c7 : index
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %count = scf.for %i = %zero to %up step %c1 iter_args(%s = %i0) -> i64 {
    %t = arith.addi %s, %i1 : i64
    scf.yield %t : i64
  }
  %six = arith.constant 6 : i64
  %counted = tensor.from_elements %count : tensor<i64>
  %expected = tensor.from_elements %six : tensor<i64>
  check.expect_eq %counted, %expected : tensor<i64>

  %x = arith.constant dense<[5, -5, -2147483648, -2147483648]> : tensor<4xi32>
  %y = arith.constant dense<[0, 0, -1, 0]> : tensor<4xi32>
  %folded = arith.divsi %x, %y : tensor<4xi32>
  %f = arith.constant dense<[-1, -1, -2147483648, -1]> : tensor<4xi32>
  check.expect_eq %folded, %f : tensor<4xi32>
  return %q, %r, %counted, %folded : tensor<33xi8>, tensor<33xi8>, tensor<i64>, tensor<4xi32>
}
