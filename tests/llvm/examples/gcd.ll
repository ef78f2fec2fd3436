; ModuleID = 'gcd.cu'
source_filename = "gcd.cu"
target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; Function Attrs: convergent mustprogress norecurse nounwind
define dso_local void @gcd(ptr nocapture noundef readonly %a, ptr nocapture noundef readonly %b, ptr nocapture noundef writeonly %out, i32 noundef %n) local_unnamed_addr #0 {
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
  %arrayidx6 = getelementptr inbounds i32, ptr %b, i64 %idxprom
  %4 = load i32, ptr %arrayidx6, align 4, !tbaa !4
  %cmp720 = icmp ne i32 %3, 0
  %cmp821 = icmp ne i32 %4, 0
  %5 = select i1 %cmp720, i1 %cmp821, i1 false
  br i1 %5, label %while.body, label %while.end

while.body:                                       ; preds = %if.end, %while.body
  %y.023 = phi i32 [ %y.1, %while.body ], [ %4, %if.end ]
  %x.022 = phi i32 [ %x.1, %while.body ], [ %3, %if.end ]
  %cmp9.not = icmp ult i32 %x.022, %y.023
  %sub = select i1 %cmp9.not, i32 0, i32 %y.023
  %x.1 = sub i32 %x.022, %sub
  %sub12 = select i1 %cmp9.not, i32 %x.022, i32 0
  %y.1 = sub i32 %y.023, %sub12
  %cmp7 = icmp ne i32 %x.1, 0
  %cmp8 = icmp ne i32 %y.1, 0
  %6 = select i1 %cmp7, i1 %cmp8, i1 false
  br i1 %6, label %while.body, label %while.end, !llvm.loop !8

while.end:                                        ; preds = %while.body, %if.end
  %x.0.lcssa = phi i32 [ %3, %if.end ], [ %x.1, %while.body ]
  %y.0.lcssa = phi i32 [ %4, %if.end ], [ %y.1, %while.body ]
  %or = or i32 %y.0.lcssa, %x.0.lcssa
  %arrayidx14 = getelementptr inbounds i32, ptr %out, i64 %idxprom
  store i32 %or, ptr %arrayidx14, align 4, !tbaa !4
  br label %cleanup

cleanup:                                          ; preds = %entry, %while.end
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
!2 = !{ptr @gcd, !"kernel", i32 1}
!3 = !{!"clang version 19.1.7"}
!4 = !{!5, !5, i64 0}
!5 = !{!"int", !6, i64 0}
!6 = !{!"omnipotent char", !7, i64 0}
!7 = !{!"Simple C++ TBAA"}
!8 = distinct !{!8, !9, !10}
!9 = !{!"llvm.loop.mustprogress"}
!10 = !{!"llvm.loop.unroll.disable"}
