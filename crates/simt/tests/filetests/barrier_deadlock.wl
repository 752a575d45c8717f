# Warp 0 waits for 64 threads at barrier 1, but warp 1 ends.
launch 1 1 1 x 64 1 1
buffer out 4
param out
code
    S2R R0, SR_TID.X
    ISETP.LT.U32.AND P0, PT, R0, 0x20, PT, PT
    MOV R1, 0x1
    MOV R2, 0x40
    @P0 BAR.SYNC.CNT RZ, PT, R1, R2, PT
    EXIT
expect
error every thread of the CTA waits at 0x4 in CTA (0, 0, 0), thread (0, 0, 0)
out
    00000000
