; atomicrmw of every operation on words, and of 64 bits.
; launch: 1 3 i32[]:10,10,7,6,1,5,5,5,5,0,1 i64[]:100
; expect: [13, 7, 2, 7, 2, 2, 5, 5, 2, 3, 0] ; [97]
target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @atomics(ptr %x, ptr %wide) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p.1 = getelementptr i32, ptr %x, i64 1
  %p.2 = getelementptr i32, ptr %x, i64 2
  %p.3 = getelementptr i32, ptr %x, i64 3
  %p.4 = getelementptr i32, ptr %x, i64 4
  %p.5 = getelementptr i32, ptr %x, i64 5
  %p.6 = getelementptr i32, ptr %x, i64 6
  %p.7 = getelementptr i32, ptr %x, i64 7
  %p.8 = getelementptr i32, ptr %x, i64 8
  %p.9 = getelementptr i32, ptr %x, i64 9
  %p.10 = getelementptr i32, ptr %x, i64 10
  %a.0 = atomicrmw add ptr %x, i32 1 seq_cst, align 4
  %a.1 = atomicrmw sub ptr %p.1, i32 1 syncscope("device") monotonic, align 4
  %a.2 = atomicrmw and ptr %p.2, i32 2 seq_cst, align 4
  %a.3 = atomicrmw or ptr %p.3, i32 1 seq_cst, align 4
  %a.4 = atomicrmw xor ptr %p.4, i32 3 seq_cst, align 4
  %u = add i32 %t, 2
  %a.5 = atomicrmw min ptr %p.5, i32 %u seq_cst, align 4
  %a.6 = atomicrmw max ptr %p.6, i32 -1 seq_cst, align 4
  %a.7 = atomicrmw umin ptr %p.7, i32 -1 seq_cst, align 4
  %a.8 = atomicrmw volatile xchg ptr %p.8, i32 %t seq_cst, align 4
  %a.9 = atomicrmw uinc_wrap ptr %p.9, i32 5 seq_cst, align 4
  %a.10 = atomicrmw udec_wrap ptr %p.10, i32 1 seq_cst, align 4
  %a.11 = atomicrmw sub ptr %wide, i64 1 seq_cst, align 8
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
