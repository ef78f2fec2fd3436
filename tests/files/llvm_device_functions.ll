; Device functions are inlined: several returns, a structure as result, one that stores through its parameter.
; launch: 1 4 i32[]:3,-4,0,9
; expect: [9 + 1, 4 + 1, 0 + 1, 81 + 1]
target triple = "nvptx64-nvidia-cuda"
define internal i32 @size(i32 %v) {
entry:
  %negative = icmp slt i32 %v, 0
  br i1 %negative, label %minus, label %square
minus:
  %n = sub i32 0, %v
  ret i32 %n
square:
  %s = mul i32 %v, %v
  ret i32 %s
}

define { i32, i32 } @both(i32 %v) {
  %s = call i32 @size(i32 %v)
  %r = insertvalue { i32, i32 } poison, i32 %s, 0
  %q = insertvalue { i32, i32 } %r, i32 1, 1
  ret { i32, i32 } %q
}

define void @put(ptr %p, i32 %v) {
  store i32 %v, ptr %p
  ret void
}

define ptx_kernel void @calls(ptr %x) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr i32, ptr %x, i32 %t
  %v = load i32, ptr %p
  %r = call { i32, i32 } @both(i32 %v)
  %a = extractvalue { i32, i32 } %r, 0
  %b = extractvalue { i32, i32 } %r, 1
  %s = add i32 %a, %b
  call void @put(ptr %p, i32 %s)
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
