; ModuleID = 'piecewise.cu'
source_filename = "piecewise.cu"
target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; Function Attrs: convergent mustprogress norecurse nounwind
define dso_local void @piecewise(ptr nocapture noundef readonly %a, ptr nocapture noundef %b, ptr nocapture noundef writeonly %out, ptr nocapture noundef %zeros, i32 noundef %limit, i32 noundef %n) local_unnamed_addr #0 {
entry:
  %0 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %1 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %mul = mul i32 %1, %0
  %2 = tail call noundef range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %add = add i32 %mul, %2
  %cmp.not = icmp slt i32 %add, %n
  br i1 %cmp.not, label %if.end, label %cleanup

if.end:                                           ; preds = %entry
  %idxprom = sext i32 %add to i64
  %arrayidx = getelementptr inbounds i32, ptr %a, i64 %idxprom
  %3 = load i32, ptr %arrayidx, align 4, !tbaa !4
  %cmp5 = icmp slt i32 %3, 0
  br i1 %cmp5, label %if.then6, label %if.else14

if.then6:                                         ; preds = %if.end
  %and = and i32 %3, 1
  %tobool.not = icmp eq i32 %and, 0
  br i1 %tobool.not, label %if.else, label %if.then7

if.then7:                                         ; preds = %if.then6
  %sub = sub nsw i32 0, %3
  %arrayidx9 = getelementptr inbounds i32, ptr %out, i64 %idxprom
  store i32 %sub, ptr %arrayidx9, align 4, !tbaa !4
  br label %cleanup

if.else:                                          ; preds = %if.then6
  %arrayidx11 = getelementptr inbounds i32, ptr %b, i64 %idxprom
  %4 = load i32, ptr %arrayidx11, align 4, !tbaa !4
  %add12 = add nsw i32 %4, %3
  %arrayidx13 = getelementptr inbounds i32, ptr %out, i64 %idxprom
  store i32 %add12, ptr %arrayidx13, align 4, !tbaa !4
  br label %cleanup

if.else14:                                        ; preds = %if.end
  %cmp15 = icmp eq i32 %3, 0
  br i1 %cmp15, label %if.then16, label %if.else17

if.then16:                                        ; preds = %if.else14
  %5 = atomicrmw add ptr %zeros, i32 1 seq_cst, align 4
  br label %cleanup

if.else17:                                        ; preds = %if.else14
  %cmp18 = icmp slt i32 %3, %limit
  br i1 %cmp18, label %if.then19, label %if.else25

if.then19:                                        ; preds = %if.else17
  %arrayidx21 = getelementptr inbounds i32, ptr %b, i64 %idxprom
  %6 = load i32, ptr %arrayidx21, align 4, !tbaa !4
  %mul22 = mul nsw i32 %6, %3
  %arrayidx24 = getelementptr inbounds i32, ptr %out, i64 %idxprom
  store i32 %mul22, ptr %arrayidx24, align 4, !tbaa !4
  br label %cleanup

if.else25:                                        ; preds = %if.else17
  %arrayidx27 = getelementptr inbounds i32, ptr %out, i64 %idxprom
  store i32 %limit, ptr %arrayidx27, align 4, !tbaa !4
  %sub28 = sub nsw i32 %3, %limit
  %arrayidx30 = getelementptr inbounds i32, ptr %b, i64 %idxprom
  store i32 %sub28, ptr %arrayidx30, align 4, !tbaa !4
  br label %cleanup

cleanup:                                          ; preds = %if.then7, %if.else, %if.then16, %if.else25, %if.then19, %entry
  ret void
}

; Function Attrs: mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef i32 @llvm.nvvm.read.ptx.sreg.ctaid.x() #1

; Function Attrs: mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef i32 @llvm.nvvm.read.ptx.sreg.ntid.x() #1

; Function Attrs: mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x() #1

attributes #0 = { convergent mustprogress norecurse nounwind "frame-pointer"="all" "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="sm_75" "target-features"="+ptx84,+sm_75" "uniform-work-group-size"="true" }
attributes #1 = { mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #2 = { convergent nocallback nounwind }

!llvm.module.flags = !{!0, !1}
!nvvm.annotations = !{!2}
!llvm.ident = !{!3}

!0 = !{i32 1, !"wchar_size", i32 4}
!1 = !{i32 4, !"nvvm-reflect-ftz", i32 0}
!2 = !{ptr @piecewise, !"kernel", i32 1}
!3 = !{!"clang version 19.1.7"}
!4 = !{!5, !5, i64 0}
!5 = !{!"int", !6, i64 0}
!6 = !{!"omnipotent char", !7, i64 0}
!7 = !{!"Simple C++ TBAA"}
!8 = distinct !{!8, !9, !10}
!9 = !{!"llvm.loop.mustprogress"}
!10 = !{!"llvm.loop.unroll.disable"}
