; A sum by a loop of cmpxchg.
; launch: 2 4 i32[]:1,2,3,4 i32[]:5
; expect: [1, 2, 3, 4] ; [25]
target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @cas(ptr %x, ptr %sum) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr i32, ptr %x, i32 %t
  %v = load i32, ptr %p
  %first = load atomic i32, ptr %sum monotonic, align 4
  br label %again
again:
  %old = phi i32 [ %first, %entry ], [ %found, %again ]
  %new = add i32 %old, %v
  %pair = cmpxchg ptr %sum, i32 %old, i32 %new seq_cst seq_cst, align 4
  %found = extractvalue { i32, i1 } %pair, 0
  %done = extractvalue { i32, i1 } %pair, 1
  br i1 %done, label %end, label %again
end:
  fence syncscope("device") seq_cst
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
