; allocas: accessed at a place that is known, and at one that is not; memset and memcpy of them.
; launch: 1 4 i32[]:0,1,2,3
; expect: [30, 20, 10, 0]
target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @local(ptr %x) {
  %a = alloca [4 x i32], align 4
  %b = alloca [4 x i32], align 4
  call void @llvm.lifetime.start.p0(i64 16, ptr %a)
  call void @llvm.memset.p0.i64(ptr align 4 %a, i8 0, i64 16, i1 false)
  %p.1 = getelementptr i32, ptr %a, i64 1
  store i32 10, ptr %p.1
  %p.2 = getelementptr i32, ptr %a, i64 2
  store i32 20, ptr %p.2
  %p.3 = getelementptr i32, ptr %a, i64 3
  store i32 30, ptr %p.3
  call void @llvm.memcpy.p0.p0.i64(ptr align 4 %b, ptr align 4 %a, i64 16, i1 false)
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr i32, ptr %x, i32 %t
  %i = load i32, ptr %p
  %j = sub i32 3, %i
  %q = getelementptr [4 x i32], ptr %b, i32 0, i32 %j
  %v = load i32, ptr %q
  store i32 %v, ptr %p
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.lifetime.start.p0(i64, ptr)
