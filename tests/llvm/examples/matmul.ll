; ModuleID = 'matmul.cu'
source_filename = "matmul.cu"
target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; Function Attrs: convergent mustprogress norecurse nounwind
define dso_local void @matmul(ptr nocapture noundef readonly %a, ptr nocapture noundef readonly %b, ptr nocapture noundef writeonly %c, i32 noundef %rows, i32 noundef %inner, i32 noundef %columns) local_unnamed_addr #0 {
entry:
  %0 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %1 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %mul = mul i32 %1, %0
  %2 = tail call noundef range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %add = add i32 %mul, %2
  %3 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %4 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.ntid.y()
  %mul6 = mul i32 %4, %3
  %5 = tail call noundef range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.y()
  %add8 = add i32 %mul6, %5
  %cmp = icmp slt i32 %add8, %rows
  %cmp9 = icmp slt i32 %add, %columns
  %or.cond = and i1 %cmp9, %cmp
  br i1 %or.cond, label %for.cond.preheader, label %if.end

for.cond.preheader:                               ; preds = %entry
  %cmp1041 = icmp sgt i32 %inner, 0
  br i1 %cmp1041, label %for.body.lr.ph, label %for.cond.cleanup

for.body.lr.ph:                                   ; preds = %for.cond.preheader
  %mul11 = mul nsw i32 %add8, %inner
  br label %for.body

for.cond.cleanup:                                 ; preds = %for.body, %for.cond.preheader
  %sum.0.lcssa = phi i32 [ 0, %for.cond.preheader ], [ %add18, %for.body ]
  %mul19 = mul nsw i32 %add8, %columns
  %add20 = add nsw i32 %mul19, %add
  %idxprom21 = sext i32 %add20 to i64
  %arrayidx22 = getelementptr inbounds i32, ptr %c, i64 %idxprom21
  store i32 %sum.0.lcssa, ptr %arrayidx22, align 4, !tbaa !4
  br label %if.end

for.body:                                         ; preds = %for.body.lr.ph, %for.body
  %k.043 = phi i32 [ 0, %for.body.lr.ph ], [ %inc, %for.body ]
  %sum.042 = phi i32 [ 0, %for.body.lr.ph ], [ %add18, %for.body ]
  %add12 = add nsw i32 %k.043, %mul11
  %idxprom = sext i32 %add12 to i64
  %arrayidx = getelementptr inbounds i32, ptr %a, i64 %idxprom
  %6 = load i32, ptr %arrayidx, align 4, !tbaa !4
  %mul13 = mul nsw i32 %k.043, %columns
  %add14 = add nsw i32 %mul13, %add
  %idxprom15 = sext i32 %add14 to i64
  %arrayidx16 = getelementptr inbounds i32, ptr %b, i64 %idxprom15
  %7 = load i32, ptr %arrayidx16, align 4, !tbaa !4
  %mul17 = mul nsw i32 %7, %6
  %add18 = add nsw i32 %mul17, %sum.042
  %inc = add nuw nsw i32 %k.043, 1
  %exitcond.not = icmp eq i32 %inc, %inner
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.body, !llvm.loop !8

if.end:                                           ; preds = %for.cond.cleanup, %entry
  ret void
}

; Function Attrs: mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef i32 @llvm.nvvm.read.ptx.sreg.ctaid.x() #1

; Function Attrs: mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef i32 @llvm.nvvm.read.ptx.sreg.ntid.x() #1

; Function Attrs: mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x() #1

; Function Attrs: mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef i32 @llvm.nvvm.read.ptx.sreg.ctaid.y() #1

; Function Attrs: mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef i32 @llvm.nvvm.read.ptx.sreg.ntid.y() #1

; Function Attrs: mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef i32 @llvm.nvvm.read.ptx.sreg.tid.y() #1

attributes #0 = { convergent mustprogress norecurse nounwind "frame-pointer"="all" "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="sm_75" "target-features"="+ptx84,+sm_75" "uniform-work-group-size"="true" }
attributes #1 = { mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #2 = { convergent nocallback nounwind }

!llvm.module.flags = !{!0, !1}
!nvvm.annotations = !{!2}
!llvm.ident = !{!3}

!0 = !{i32 1, !"wchar_size", i32 4}
!1 = !{i32 4, !"nvvm-reflect-ftz", i32 0}
!2 = !{ptr @matmul, !"kernel", i32 1}
!3 = !{!"clang version 19.1.7"}
!4 = !{!5, !5, i64 0}
!5 = !{!"int", !6, i64 0}
!6 = !{!"omnipotent char", !7, i64 0}
!7 = !{!"Simple C++ TBAA"}
!8 = distinct !{!8, !9, !10}
!9 = !{!"llvm.loop.mustprogress"}
!10 = !{!"llvm.loop.unroll.disable"}
