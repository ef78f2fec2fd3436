; Shuffles, votes, matches and reductions among the lanes of a warp.
; launch: 1 32 u32[224]
; expect: [v for t in range(32) for v in (t ^ 1, min(t + 1, 31), int(t < 31), 0x55555555, 0, 0x01010101 << t % 8, 496)]
target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @exchanges(ptr %out) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %a = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %t, i32 1, i32 31)
  %b = call { i32, i1 } @llvm.nvvm.shfl.sync.down.i32p(i32 -1, i32 %t, i32 1, i32 31)
  %b.v = extractvalue { i32, i1 } %b, 0
  %b.p = extractvalue { i32, i1 } %b, 1
  %b.w = zext i1 %b.p to i32
  %low = and i32 %t, 1
  %even = icmp eq i32 %low, 0
  %c = call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 %even)
  %d = call i1 @llvm.nvvm.vote.all.sync(i32 -1, i1 %even)
  %d.w = zext i1 %d to i32
  %key = and i32 %t, 7
  %e = call i32 @llvm.nvvm.match.any.sync.i32(i32 -1, i32 %key)
  %f = call i32 @llvm.nvvm.redux.sync.add(i32 %t, i32 -1)
  %row = getelementptr [7 x i32], ptr %out, i32 %t
  store i32 %a, ptr %row
  %p.1 = getelementptr i32, ptr %row, i64 1
  store i32 %b.v, ptr %p.1
  %p.2 = getelementptr i32, ptr %row, i64 2
  store i32 %b.w, ptr %p.2
  %p.3 = getelementptr i32, ptr %row, i64 3
  store i32 %c, ptr %p.3
  %p.4 = getelementptr i32, ptr %row, i64 4
  store i32 %d.w, ptr %p.4
  %p.5 = getelementptr i32, ptr %row, i64 5
  store i32 %e, ptr %p.5
  %p.6 = getelementptr i32, ptr %row, i64 6
  store i32 %f, ptr %p.6
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.laneid()
declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32)
declare { i32, i1 } @llvm.nvvm.shfl.sync.down.i32p(i32, i32, i32, i32)
declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1)
declare i1 @llvm.nvvm.vote.all.sync(i32, i1)
declare i32 @llvm.nvvm.match.any.sync.i32(i32, i32)
declare i32 @llvm.nvvm.redux.sync.add(i32, i32)
