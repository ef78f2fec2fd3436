; ModuleID = 'ping_pong.cu'
source_filename = "ping_pong.cu"
target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; Function Attrs: convergent mustprogress norecurse nounwind
define dso_local void @ping_pong(ptr noundef %from, ptr noundef %to, i32 noundef %n, i32 noundef %steps) local_unnamed_addr #0 {
entry:
  %0 = tail call noundef range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %cmp = icmp eq i32 %0, 0
  %cond.v = select i1 %cmp, i32 %n, i32 %0
  %cond = add i32 %cond.v, -1
  %sub1 = add nsw i32 %n, -1
  %cmp2 = icmp eq i32 %0, %sub1
  %add = add nuw nsw i32 %0, 1
  %cond6 = select i1 %cmp2, i32 0, i32 %add
  %cmp720 = icmp sgt i32 %steps, 0
  br i1 %cmp720, label %for.body.lr.ph, label %for.cond.cleanup

for.body.lr.ph:                                   ; preds = %entry
  %idxprom = sext i32 %cond to i64
  %idxprom8 = zext nneg i32 %cond6 to i64
  %idxprom11 = zext nneg i32 %0 to i64
  br label %for.body

for.cond.cleanup:                                 ; preds = %for.body, %entry
  ret void

for.body:                                         ; preds = %for.body.lr.ph, %for.body
  %step.023 = phi i32 [ 0, %for.body.lr.ph ], [ %inc, %for.body ]
  %to.addr.022 = phi ptr [ %to, %for.body.lr.ph ], [ %from.addr.021, %for.body ]
  %from.addr.021 = phi ptr [ %from, %for.body.lr.ph ], [ %to.addr.022, %for.body ]
  %arrayidx = getelementptr inbounds i32, ptr %from.addr.021, i64 %idxprom
  %1 = load i32, ptr %arrayidx, align 4, !tbaa !4
  %arrayidx9 = getelementptr inbounds i32, ptr %from.addr.021, i64 %idxprom8
  %2 = load i32, ptr %arrayidx9, align 4, !tbaa !4
  %add10 = add nsw i32 %2, %1
  %arrayidx12 = getelementptr inbounds i32, ptr %to.addr.022, i64 %idxprom11
  store i32 %add10, ptr %arrayidx12, align 4, !tbaa !4
  tail call void @llvm.nvvm.barrier0()
  %inc = add nuw nsw i32 %step.023, 1
  %exitcond.not = icmp eq i32 %inc, %steps
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.body, !llvm.loop !8
}

; Function Attrs: mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x() #1

; Function Attrs: convergent nocallback nounwind
declare void @llvm.nvvm.barrier0() #2

attributes #0 = { convergent mustprogress norecurse nounwind "frame-pointer"="all" "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="sm_75" "target-features"="+ptx84,+sm_75" "uniform-work-group-size"="true" }
attributes #1 = { mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #2 = { convergent nocallback nounwind }

!llvm.module.flags = !{!0, !1}
!nvvm.annotations = !{!2}
!llvm.ident = !{!3}

!0 = !{i32 1, !"wchar_size", i32 4}
!1 = !{i32 4, !"nvvm-reflect-ftz", i32 0}
!2 = !{ptr @ping_pong, !"kernel", i32 1}
!3 = !{!"clang version 19.1.7"}
!4 = !{!5, !5, i64 0}
!5 = !{!"int", !6, i64 0}
!6 = !{!"omnipotent char", !7, i64 0}
!7 = !{!"Simple C++ TBAA"}
!8 = distinct !{!8, !9, !10}
!9 = !{!"llvm.loop.mustprogress"}
!10 = !{!"llvm.loop.unroll.disable"}
