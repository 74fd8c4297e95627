// --check also runs the interpreter if that is cheap: two compiled runs may have the same error.
// The cost is iterations times the ops of a body, times the trip counts of loops.
// RUN: tessera run %s --function small --check | FileCheck %s --check-prefix=SMALL
// RUN: tessera run %s --function large --check | FileCheck %s --check-prefix=LARGE
// RUN: tessera run %s --function until --check | FileCheck %s --check-prefix=UNTIL
// RUN: tessera run %s --function small --check=compiled | FileCheck %s --check-prefix=COMPILED
// RUN: tessera run %s --function large --check=interpreter | FileCheck %s --check-prefix=COMPILED
// RUN: not tessera run %s --function small --check=both2 2>&1 | FileCheck %s --check-prefix=VALUE

// SMALL: {{^check  result0  ok}}
// SMALL: {{^interpreter  ok  about [0-9]+ operations on elements$}}
// LARGE: {{^check  result0  ok}}
// LARGE: {{^interpreter  skipped  about [0-9],[0-9]{3},[0-9]{3} operations on elements, more than 2,000,000; --check=interpreter runs it$}}
// UNTIL: {{^interpreter  skipped  its loops have no constant bounds; --check=interpreter runs it$}}
// COMPILED: {{^check  result0  ok}}
// COMPILED-NOT: {{^interpreter}}
// VALUE: error: --check 'both2': expected both, compiled or interpreter
func.func @small(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = math.exp %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func @large(%x: tensor<64x100xf32>) -> tensor<64x100xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c500 = arith.constant 500 : index
  %0 = scf.for %i = %c0 to %c500 step %c1 iter_args(%a = %x) -> tensor<64x100xf32> {
    %b = math.sin %a : tensor<64x100xf32>
    scf.yield %b : tensor<64x100xf32>
  }
  return %0 : tensor<64x100xf32>
}
func.func @until(%n: tensor<i32> {dist.range = [3, 9]}) -> tensor<i32> {
  %start = tensor.extract %n[] : tensor<i32>
  %c1 = arith.constant 1 : i32
  %c100 = arith.constant 100 : i32
  %0 = scf.while (%i = %start) : (i32) -> i32 {
    %more = arith.cmpi slt, %i, %c100 : i32
    scf.condition(%more) %i : i32
  } do {
  ^bb0(%i: i32):
    %next = arith.addi %i, %c1 : i32
    scf.yield %next : i32
  }
  %r = tensor.from_elements %0 : tensor<i32>
  return %r : tensor<i32>
}
