; memset and memcpy of many bytes become loops.
; launch: 1 1 i32[]:7,8,9 i32[]:0,0,0
; expect: [7, 8, 9] ; [16843009, 16843009, 16843009]
target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @bulk(ptr %x, ptr %y) {
  %a = alloca [200 x i32], align 4
  %b = alloca [200 x i32], align 4
  call void @llvm.memset.p0.i64(ptr align 4 %a, i8 1, i64 800, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr align 4 %b, ptr align 4 %a, i64 800, i1 false)
  %last = getelementptr [200 x i32], ptr %b, i64 0, i64 197
  call void @llvm.memmove.p0.p0.i64(ptr align 4 %y, ptr align 4 %last, i64 12, i1 false)
  ret void
}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
