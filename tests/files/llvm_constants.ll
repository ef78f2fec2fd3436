; Global and constant variables with initial values: numbers, strings, structures; constant expressions as addresses.
; launch: 1 3 i32[]:0,0,0
; expect: [5 + 20 + ord("a") + 7, -6 + 20 + ord("b") + 7, 7 + 20 + ord("c") + 7]
target triple = "nvptx64-nvidia-cuda"
%pair = type { i8, i32 }
@table = addrspace(4) constant [3 x i32] [i32 5, i32 -6, i32 7], align 4
@text = private unnamed_addr addrspace(1) constant [4 x i8] c"abc\00", align 1
@pairs = internal addrspace(1) global [2 x %pair] [%pair { i8 1, i32 10 }, %pair { i8 2, i32 20 }], align 4

define ptx_kernel void @constants(ptr %out) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr [3 x i32], ptr addrspace(4) @table, i32 0, i32 %t
  %a = load i32, ptr addrspace(4) %p
  %b = load i32, ptr addrspace(1) getelementptr ([2 x %pair], ptr addrspace(1) @pairs, i64 0, i64 1, i32 1)
  %q = getelementptr i8, ptr addrspace(1) @text, i32 %t
  %c = load i8, ptr addrspace(1) %q
  %d = zext i8 %c to i32
  %e = load i32, ptr addrspace(4) getelementptr inbounds (i8, ptr addrspace(4) @table, i64 8)
  %s.1 = add i32 %a, %b
  %s.2 = add i32 %s.1, %d
  %s.3 = add i32 %s.2, %e
  %r = getelementptr i32, ptr %out, i32 %t
  store i32 %s.3, ptr %r
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
